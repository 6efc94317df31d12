//! Properties of plans over generated clustersets.

use std::collections::{BTreeMap, BTreeSet};

use namesake::model::{ClusterId, ServiceKey, SliceKey};
use namesake::reconcile::objects::*;
use namesake::reconcile::observed::*;
use namesake::reconcile::plan::Action;
use namesake::reconcile::{naming, plan_all};
use proptest::prelude::*;

use crate::generate::{CLUSTERS, Edit, SERVICES, edit, edit_with_outages, small, start};
use crate::oracle::may_delete;
use crate::set::*;
use crate::shuffle::one_shuffled;

/// How many clustersets each property is tried on; `PROPTEST_CASES` says another number.
const CASES: u32 = 1000;

pub fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 4000, ..ProptestConfig::default() }
}

fn edits(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(edit(), 1..most)
}

fn edits_with_outages(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(edit_with_outages(), 1..most)
}

fn make(list: &[Edit]) -> Set {
    let mut set = start(small());
    for edit in list {
        set.edit(edit);
    }
    set
}

proptest! {
    #![proptest_config(config(CASES))]

    /// `converge` itself refuses more than twelve rounds; here the second time does nothing at all.
    #[test]
    fn a_plan_applied_and_observed_again_is_empty(list in edits_with_outages(30)) {
        let mut set = make(&list);
        set.run();
        prop_assert_eq!(set.pending(), []);
        for edit in &list {
            set.edit(edit);
            set.run();
            prop_assert_eq!(set.pending(), [], "after {:?}", edit);
        }
    }

    /// In whatever order clusters and objects become known, the same is planned and the same results.
    #[test]
    fn mcs_r19_the_order_of_observation_does_not_matter(list in edits(20), seed in any::<u64>()) {
        let one = make(&list);
        let mut other = one_shuffled(&one, seed);
        let plans = |set: &Set| plan_all(&set.sim.world, &set.settings, set.now).collect::<Vec<_>>();
        prop_assert_eq!(plans(&one), plans(&other));
        let mut one = one;
        one.run();
        other.run();
        prop_assert_eq!(one.gist(), other.gist());
    }

    /// A restart at any moment changes nothing by itself, and leads to the same in the end.
    #[test]
    fn mcs_r85_interrupted_runs_end_like_undisturbed_ones(
        list in edits(12), cuts in prop::collection::vec(0..12_usize, 12)
    ) {
        let mut undisturbed = start(small());
        let mut disturbed = start(small());
        for (edit, cut) in list.iter().zip(cuts) {
            undisturbed.edit(edit);
            undisturbed.run();
            disturbed.edit(edit);
            // Killed in the middle of the first plans, then started again.
            let changes: Vec<_> = disturbed.pending().into_iter().take(cut).collect();
            for change in &changes {
                let _refused = disturbed.sim.change(change, disturbed.now);
            }
            disturbed.restart([]);
        }
        undisturbed.run();
        disturbed.run();
        prop_assert_eq!(undisturbed.gist(), disturbed.gist());
        disturbed.restart([]);
        prop_assert_eq!(disturbed.pending(), []);
    }

    /// However many there are, a change of one pod touches one slice per importer, and nothing else.
    #[test]
    fn mcs_w25_one_pods_change_touches_one_slice_per_importer(
        list in edits(25), pods in 1..40_usize, pod in 0..40_usize, how in 0..3_usize
    ) {
        let mut set = make(&list);
        let fill = |set: &mut Set, pods: &[usize], unready: Option<usize>| {
            let list = pods.iter().map(|n| {
                let ready = unready != Some(*n);
                Endpoint { ready, serving: ready, zone: Some("z".into()), ..endpoint(&format!("10.9.0.{}", n + 1)) }
            });
            set.source("a", "shop/web", "big", ["http 8080"], list.collect());
        };
        for name in ["0-4", "1-4", "0-6", "1-6"] {
            set.no_source("a", "shop/web", name);
        }
        set.namespace("a", "shop");
        set.service("a", "shop/web", cluster_ip(["http 80"]));
        set.export("a", "shop/web", -5);
        let all: Vec<_> = (0..pods).collect();
        fill(&mut set, &all, None);
        set.run();
        let pod = pod % pods;
        match how {
            0 => fill(&mut set, &all.iter().copied().filter(|n| *n != pod).collect::<Vec<_>>(), None),
            1 => fill(&mut set, &(0..=pods).collect::<Vec<_>>(), None),
            _ => fill(&mut set, &all, Some(pod)),
        }
        let mut per_cluster: BTreeMap<ClusterId, usize> = BTreeMap::new();
        for change in set.run() {
            prop_assert!(matches!(change.action, Action::ApplySlice(_) | Action::DeleteSlice(..)), "{change:?}");
            *per_cluster.entry(change.cluster).or_default() += 1;
        }
        prop_assert!(per_cluster.values().all(|n| *n == 1), "{per_cluster:?}");
    }

    /// What is not ours is as it was, whatever happens around it.
    #[test]
    fn mcs_r94_nothing_foreign_is_touched(list in edits_with_outages(25), where_to in prop::collection::vec(0..12_usize, 1..5)) {
        let mut set = start(small());
        let foreign = plant(&mut set, &where_to);
        for edit in list.iter().filter(|edit| !matches!(edit, Edit::NoNamespace { .. })) {
            // Damage would be done to theirs.
            if !matches!(edit, Edit::Damage { .. }) {
                set.edit(edit);
            }
            set.run();
        }
        for (cluster, thing) in foreign {
            let there = match &thing {
                Thing::Import(key, import) => set.import(cluster, &key.to_string()) == Some(import),
                Thing::Service(key, service) => {
                    set.local(cluster, &key.to_string()).and_then(|local| local.service.as_ref()) == Some(service)
                }
                Thing::Slice(key) => set.sim.world.members()[&id(cluster)].has_slice(key),
            };
            prop_assert!(there, "{cluster}: {thing:?}");
        }
        for change in set.log.iter().flat_map(|plan| &plan.plan.changes) {
            prop_assert!(!matches!(change.action, Action::DeleteExport(..) | Action::DeleteNamespace(..)), "{change:?}");
        }
    }

    /// R82 and R84 as an oracle of their own: each delete of each plan has a right to be there.
    #[test]
    fn mcs_r82_nothing_is_deleted_too_early(
        list in edits_with_outages(20), more in edits_with_outages(12), unheard in 0..16_usize, wait in 0..3_usize
    ) {
        let mut set = make(&list);
        for cluster in CLUSTERS {
            set.reach(cluster, Reach::Live);
        }
        set.run();
        // Another process, which hears some clusters and not others.
        let names: Vec<_> = CLUSTERS.iter().enumerate().filter(|(n, _)| unheard >> n & 1 == 1).map(|(_, c)| *c).collect();
        let settings = set.settings.clone();
        let full = set.sim.world.clone();
        set.restart([]);
        for name in &names {
            set.sim.world.remove_member(&id(name));
            set.reach(name, Reach::Unheard { since: set.now });
        }
        set.wait([0, 299, 300][wait]);
        for edit in &more {
            // Who was not heard does not turn up by itself here.
            if !matches!(edit, Edit::Mend { cluster } if names.contains(&CLUSTERS[*cluster])) {
                set.edit(edit);
            }
            for plan in plan_all(&set.sim.world, &settings, set.now).collect::<Vec<_>>() {
                for change in &plan.plan.changes {
                    may_delete(&set, &plan.key, change)?;
                }
            }
            set.run();
        }
        // What those hold up is still there when they are heard at last, if it did not take too long.
        if set.now.since(Time(START)) < settings.unreachable.ttl {
            for name in &names {
                set.hear(name, &full);
            }
            set.run();
            prop_assert_eq!(set.pending(), []);
        }
    }

    /// A member that is dead for good: what the others withdraw goes all the same.
    #[test]
    fn mcs_r84_a_dead_member_holds_up_nobody_elses_deletions(list in edits(25), restarted in any::<bool>()) {
        let mut set = make(&list);
        set.run();
        if restarted {
            set.restart(["c"]);
        } else {
            set.cut("c");
        }
        for cluster in ["a", "a-2", "b"] {
            for name in SERVICES {
                set.unexport(cluster, name);
            }
        }
        // Slices at once.
        set.run();
        for (cluster, name) in everywhere() {
            let sources: BTreeSet<_> = set.mirrored(cluster, name).iter().filter_map(|(_, s)| s.source()).collect();
            prop_assert!(cluster == "c" || sources.iter().all(|source| *source == id("c")), "{cluster} {name}: {sources:?}");
        }
        // Imports that c does not hold up, after the TTL at the latest.
        set.wait(301);
        set.run();
        for (cluster, name) in everywhere().into_iter().filter(|(cluster, _)| *cluster != "c") {
            if let Some(import) = set.import(cluster, name) {
                prop_assert_eq!(&import.status.clusters, &[id("c")], "{} {}", cluster, name);
            }
        }
    }
}

fn everywhere() -> Vec<(&'static str, &'static str)> {
    CLUSTERS.into_iter().flat_map(|cluster| SERVICES.into_iter().map(move |name| (cluster, name))).collect()
}

/// Something that is not ours.
#[derive(Debug, Clone)]
enum Thing {
    Import(ServiceKey, Import),
    Service(ServiceKey, Service),
    Slice(SliceKey),
}

/// Puts foreign objects where ours would want to be.
fn plant(set: &mut Set, where_to: &[usize]) -> Vec<(&'static str, Thing)> {
    let mut things = Vec::new();
    for n in where_to {
        let (cluster, name) = (CLUSTERS[n % 4], key(SERVICES[n / 4 % 2]));
        let meta = set.meta();
        match n % 3 {
            0 => {
                let spec = ImportSpec {
                    kind: namesake::model::ImportKind::ClusterSetIp,
                    ports: vec![],
                    ips: vec![],
                    families: vec![],
                    traffic: Traffic::default(),
                };
                let import = Import { meta, spec, status: ImportStatus::default() };
                set.sim.world.set_import(&id(cluster), &name, Some(import.clone()));
                things.retain(|(c, t)| !matches!(t, Thing::Import(key, _) if *c == cluster && *key == name));
                things.push((cluster, Thing::Import(name, import)));
            }
            1 => {
                let derived = naming::derived_key(&name);
                let service = Service { meta, spec: cluster_ip(["theirs 1"]) };
                set.sim.world.set_service(&id(cluster), &derived, Some(service.clone()));
                things.retain(|(c, t)| !matches!(t, Thing::Service(key, _) if *c == cluster && *key == derived));
                things.push((cluster, Thing::Service(derived, service)));
            }
            _ => {
                let slice_name = format!("{}-{}", naming::derived(&name), CLUSTERS[n % 2]);
                let slice_key = SliceKey { namespace: name.namespace, name: slice_name.into() };
                let content = SliceContent { family: Family::V4, ports: vec![], endpoints: vec![] };
                set.sim.world.set_slice(&id(cluster), &slice_key, Some(Slice { meta, content }));
                things.push((cluster, Thing::Slice(slice_key)));
            }
        }
    }
    things
}
