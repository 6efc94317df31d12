//! What a million endpoints cost in memory: counted in live bytes, of the answers alone and of everything that is
//! kept; and that a full list of the same objects, or of changed ones, does not hold them twice.

#[path = "support/mix.rs"]
mod mix;

use std::sync::Arc;
use std::time::Instant;

use mix::{LARGE, Size};
use namesake::answers::{Options, Store};
use namesake::feed::{Feed, Now};
use namesake::model::{Change, Resource, Update};
use namesake::source::Health;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// How many updates the feed takes in at once, as it does from its queue.
const BURST: usize = 1024;

#[test]
fn a_million_endpoints_stay_within_their_bytes() {
    // Without optimisation it would take minutes; the figures per endpoint are the same.
    let size = if cfg!(debug_assertions) { Size { services: 9_000, headless: 1_000, ..LARGE } } else { LARGE };
    let _profiler = dhat::Profiler::builder().testing().build();
    let live = || dhat::HeapStats::get().curr_bytes as f64;
    let blocks = || dhat::HeapStats::get().curr_blocks as f64;
    let endpoints = f64::from(size.all_endpoints());
    let begin = live();

    let store = Arc::new(Store::new(Options::default()));
    let mut feed = Feed::new(Arc::clone(&store), Arc::new(Health::new(true)), None, Now::read());
    let clock = Instant::now();
    list(&mut feed, size, 0);
    println!("{} services, {endpoints} endpoints, built in {:.1?} (while counting)", store.counts().0, clock.elapsed());
    assert_eq!(store.counts(), ((size.services + size.headless) as usize, size.all_endpoints() as usize));
    let (whole, whole_blocks) = (live() - begin, blocks());
    let peak = |what| {
        let peak = (dhat::HeapStats::get().max_bytes as f64 - begin) / whole;
        println!("peak after {what}: {peak:.2} of what stays");
        peak
    };
    let first = peak("the first list");
    list(&mut feed, size, 0);
    assert_eq!(feed.counts().rebuilds(), u64::from(size.services + size.headless), "nothing changed");
    let same = peak("a list of the same");
    list(&mut feed, size, 1);
    let changed = peak("a list in which every address changed");
    let again = live() - begin;
    drop(feed);
    let (answers, answers_blocks) = (live() - begin, blocks());
    println!("answers       {:6.1} bytes an endpoint in {:.2} blocks", answers / endpoints, answers_blocks / endpoints);
    println!("whole process {:6.1} bytes an endpoint in {:.2} blocks", whole / endpoints, whole_blocks / endpoints);
    println!("after all     {:6.1} bytes an endpoint", again / endpoints);

    assert!(answers / endpoints <= 65.0, "the answers' store");
    assert!(whole / endpoints <= 120.0, "index, store and feed");
    assert!(again <= whole * 1.02, "lists leave something behind");
    assert!(first <= 1.5 && same <= 1.5 && changed <= 1.5, "a list holds things twice");
}

/// A full list, in bursts, as a source sends it: nothing but a burst is there twice.
fn list(feed: &mut Feed, size: Size, turn: u8) {
    let mut of = |resource, changes: &mut dyn Iterator<Item = Change>| {
        let mut burst = Vec::with_capacity(BURST);
        burst.push(Update::ResyncBegin(resource));
        for change in changes {
            burst.push(Update::Change(change));
            if burst.len() == BURST {
                feed.take(burst.drain(..), Now::read());
            }
        }
        burst.push(Update::ResyncEnd(resource));
        feed.take(burst, Now::read());
    };
    of(Resource::Imports, &mut size.imports(turn));
    of(Resource::Slices, &mut size.slices(turn));
    // What was built a moment ago and changed again waits for its turn.
    while let Some(due) = feed.due() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        feed.flush(Now::read());
    }
}
