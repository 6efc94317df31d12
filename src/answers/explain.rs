//! Why a name answers what it answers: from the answer back to import, slice, endpoint, condition and source cluster;
//! for a negative answer what is missing, and the nearest names that exist.

use std::fmt::Write;

use super::lookup::{Verdict, lookup};
use super::name::{QueryName, wire};
use super::records::{negative_soa, records};
use super::store::Store;
use super::text::{dotted, type_name};
use crate::index::Index;
use crate::model::{
    EndpointObjects, EndpointRef, Import, ImportKind, Port, Readiness, Resource, ServiceKey, Skipped, Slice,
    dashed_address,
};

/// How many endpoints, names or suggestions are listed before the rest is only counted.
const MOST: usize = 20;

/// How many services are compared for the nearest names: some milliseconds.
const LOOKED_AT: usize = 2_000;

/// How many nearest names are offered.
const NEAREST: usize = 3;

/// Explains the answer to `name` (dotted, absolute) and `qtype`, as text for a person.
#[must_use]
pub fn explain(index: &Index, store: &Store, name: &str, qtype: u16) -> String {
    let asked = wire(name);
    let Some(asked) = asked.as_deref().and_then(QueryName::read_lower) else {
        return format!(
            "{name} can't be a DNS name: a label is empty or longer than 63 bytes, or the whole is too long\n"
        );
    };
    let mut out = Report { text: String::new() };
    let full = dotted(asked.wire());
    out.line(&format!("{full} {}", type_name(qtype)));
    lookup(store, &asked, qtype, |verdict| out.answer(store, &asked, verdict));
    out.line("");
    out.line("Why:");
    let Some((zone, front)) = store.zone_of(&asked) else {
        let zones = store.zones().iter().map(|zone| format!("{}.", zone.name)).collect::<Vec<_>>();
        out.item("zone", &format!("none of ours: this server has {}", zones.join(", ")));
        return out.text;
    };
    out.item("zone", &format!("{}.", zone.name));
    if let Some(ede) = store.state().withheld() {
        let why = if store.state().synced() {
            "the data is older than max_stale allows; see /ready?verbose".to_owned()
        } else {
            "the first lists are not complete yet; see /ready?verbose".to_owned()
        };
        out.item("data", &format!("{why} (EDE {})", ede.code()));
    }
    let label = |i: usize| String::from_utf8_lossy(asked.label(front - 1 - i)).into_owned();
    match front {
        0 => out.item("name", "the zone itself: SOA and NS live here"),
        1 | 2 if label(0) != "svc" => out.item("name", "not below svc: dns-version (TXT), ns.dns (A, AAAA) live here"),
        1 => out.item("name", "the parent of every namespace: it exists and holds nothing"),
        _ if label(0) != "svc" => out.item("name", "services live below svc; nothing else has names here"),
        2 => out.namespace(index, store, &label(1)),
        _ => match ServiceKey::new(&label(1), &label(2)) {
            Some(key) => out.service(index, store, &key, &asked, front - 3),
            None => out.item("name", "service and namespace can't be labels"),
        },
    }
    out.text
}

struct Report {
    text: String,
}

impl Report {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn item(&mut self, what: &str, text: &str) {
        let _ = writeln!(self.text, "  {what:<9} {text}");
    }

    fn sub(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {:<9}   {text}", "");
    }

    fn answer(&mut self, store: &Store, asked: &QueryName<'_>, verdict: &Verdict<'_>) {
        match verdict {
            Verdict::Refused => self.line("REFUSED"),
            Verdict::ServFail(_, ede) => self.line(&format!("SERVFAIL (EDE {})", ede.code())),
            Verdict::NxDomain(zone) | Verdict::NoData(zone) => {
                let nx = matches!(verdict, Verdict::NxDomain(_));
                self.line(if nx {
                    "NXDOMAIN: the name does not exist"
                } else {
                    "NODATA: the name exists, but not with this type"
                });
                self.line(&format!("  {}", negative_soa(store, zone, asked.wire())));
            }
            Verdict::Data(zone, data) => {
                // Sorted below, so the order drawn here does not show.
                let found = records(store, zone, asked.wire(), data, &mut fastrand::Rng::with_seed(0));
                let count = found.answers.len();
                self.line(&format!("NOERROR: {count} record{}", if count == 1 { "" } else { "s" }));
                let mut lines: Vec<_> = found.answers.iter().map(ToString::to_string).collect();
                lines.sort();
                self.list(lines, |out, line| out.line(&format!("  {line}")));
            }
        }
    }

    /// Writes the first of many, and how many more there are.
    fn list<T>(&mut self, all: Vec<T>, mut each: impl FnMut(&mut Self, T)) {
        let more = all.len().saturating_sub(MOST);
        for one in all.into_iter().take(MOST) {
            each(self, one);
        }
        if more > 0 {
            self.sub(&format!("… and {more} more"));
        }
    }

    fn namespace(&mut self, index: &Index, store: &Store, namespace: &str) {
        let mut known: Vec<_> = index.services().filter(|key| key.namespace.as_str() == namespace).collect();
        known.sort();
        let served = known.iter().filter(|key| store.get(key).is_some()).count();
        self.item("namespace", &format!("{namespace}: {} imports, {served} of them with names", known.len()));
        if known.is_empty() {
            self.nearest(index, store, &ServiceKey::new(namespace, "x"), |key| key.namespace.to_string());
        }
        self.list(known, |out, key| out.sub(key.name.as_str()));
    }

    fn service(&mut self, index: &Index, store: &Store, key: &ServiceKey, asked: &QueryName<'_>, left: usize) {
        let options = store.options();
        if !options.namespaces.is_empty() && !options.namespaces.iter().any(|n| n == key.namespace.as_str()) {
            self.item("namespace", &format!("{} is not among those served (option namespaces)", key.namespace));
            return;
        }
        for (resource, namespace, name, skipped) in index.unreadable() {
            if namespace == key.namespace.as_str() && (resource == Resource::Slices || name == key.name.as_str()) {
                self.item("skipped", &format!("{} {namespace}/{name}: {}", resource.plural(), skipped.what));
            }
        }
        let slices = index.slices_of(key);
        match index.view(key) {
            None => {
                self.item("import", &format!("there is no ServiceImport {key}"));
                if !slices.is_empty() {
                    let names: Vec<_> = slices.iter().map(|(key, _)| key.to_string()).collect();
                    self.item("slices", &format!("though {} name it: they wait for the import", names.join(", ")));
                }
                self.nearest(index, store, &Some(key.clone()), |key| format!("{}.{}.svc", key.name, key.namespace));
            }
            Some(view) => {
                self.import(key, view.import);
                self.consequence(store, key, view.import, &view.slices);
                let wanted: Vec<_> = (0..left).map(|i| String::from_utf8_lossy(asked.label(i)).into_owned()).collect();
                self.slices(&view.slices, &wanted);
                if left > 0 {
                    self.names_below(store, key, asked, left, view.import, &view.slices);
                }
            }
        }
    }

    fn import(&mut self, key: &ServiceKey, import: &Import) {
        let kind = match import.kind {
            ImportKind::ClusterSetIp if import.ips.is_empty() => "ClusterSetIP without address yet".to_owned(),
            ImportKind::ClusterSetIp => {
                let ips: Vec<_> = import.ips.iter().map(ToString::to_string).collect();
                format!("ClusterSetIP {}", ips.join(", "))
            }
            ImportKind::Headless => "Headless".to_owned(),
        };
        let clusters: Vec<_> = import.clusters.iter().map(ToString::to_string).collect();
        let from = if clusters.is_empty() { "nobody, as its status says".to_owned() } else { clusters.join(", ") };
        self.item(
            "import",
            &format!("ServiceImport {key}: {kind}; ports {}; exported by {from}", ports(&import.ports)),
        );
        self.skipped(&import.skipped);
    }

    fn skipped(&mut self, skipped: &[Skipped]) {
        for one in skipped {
            self.sub(&format!("not served: {} ({})", one.what, one.reason));
        }
    }

    /// What the kind of import and the state of its endpoints mean for its name.
    fn consequence(
        &mut self,
        store: &Store,
        key: &ServiceKey,
        import: &Import,
        slices: &[(&crate::model::SliceKey, &Slice)],
    ) {
        let ready = slices.iter().flat_map(|(_, s)| s.endpoints.ready()).count();
        if store.get(key).is_some() {
            if import.kind == ImportKind::ClusterSetIp && import.ips.is_empty() {
                self.sub(
                    "it has no address in spec.ips yet, and its name answers no other: whoever wrote it gives it one",
                );
            } else if import.kind == ImportKind::ClusterSetIp {
                self.sub("its name answers its own address, whatever its endpoints do");
            }
            return;
        }
        let why = match import.kind {
            ImportKind::Headless if store.options().no_endpoints => {
                "endpoints are not watched (option no_endpoints), so a headless import has no names"
            }
            ImportKind::Headless if slices.is_empty() => "no EndpointSlice names it, so a headless import has no names",
            ImportKind::Headless => {
                "none of its endpoints is ready, so a headless import has no names (specification §2.4.1)"
            }
            ImportKind::ClusterSetIp if import.endpoint_objects != EndpointObjects::Absent && ready == 0 => {
                "it has no ready endpoint, and the option ignore_empty_service hides it"
            }
            ImportKind::ClusterSetIp => "it is not served yet",
        };
        self.sub(why);
    }

    fn slices(&mut self, slices: &[(&crate::model::SliceKey, &Slice)], wanted: &[String]) {
        for (key, slice) in slices {
            let cluster = slice.cluster.as_ref().map_or_else(|| "no cluster".to_owned(), |c| format!("cluster {c}"));
            let ready = slice.endpoints.ready().count();
            self.item(
                "slice",
                &format!(
                    "EndpointSlice {key}: {cluster}; ports {}; {} endpoints, {ready} ready",
                    ports(&slice.ports),
                    slice.endpoints.len()
                ),
            );
            self.skipped(&slice.skipped);
            // Of a per-endpoint name only that endpoint is of interest, if it is there.
            let host = wanted.first();
            let of_host = |e: &EndpointRef<'_>| host.is_some_and(|h| host_names(e).any(|name| name == *h));
            let mut listed: Vec<_> = slice.endpoints.iter().filter(of_host).collect();
            if listed.is_empty() && wanted.is_empty() {
                listed = slice.endpoints.iter().collect();
            }
            self.list(listed, |out, endpoint| out.sub(&describe(&endpoint)));
        }
    }

    /// For a name below the service: whether it exists, and else which do.
    fn names_below(
        &mut self,
        store: &Store,
        key: &ServiceKey,
        asked: &QueryName<'_>,
        left: usize,
        import: &Import,
        slices: &[(&crate::model::SliceKey, &Slice)],
    ) {
        let Some(service) = store.get(key) else { return };
        let first = String::from_utf8_lossy(asked.label(0)).into_owned();
        if service.node(asked, left).is_some() {
            return;
        }
        let mut names = std::collections::BTreeSet::new();
        if first.starts_with('_') {
            let all: Box<dyn Iterator<Item = &Port>> = match import.kind {
                ImportKind::ClusterSetIp => Box::new(import.ports.iter()),
                ImportKind::Headless => Box::new(slices.iter().flat_map(|(_, s)| s.ports.iter())),
            };
            names.extend(all.filter_map(|p| p.name.as_ref().map(|n| format!("_{n}.{}", p.protocol.label()))));
            self.item("name", "no port of that name and protocol");
        } else if import.kind == ImportKind::ClusterSetIp {
            self.item("name", "a ClusterSetIP import has no names of endpoints or clusters (specification §2.3.4)");
        } else {
            for (_, slice) in slices {
                let Some(cluster) = &slice.cluster else { continue };
                names.extend(
                    slice.endpoints.ready().filter_map(|e| Some(format!("{}.{cluster}", host_names(&e).next()?))),
                );
            }
            self.item("name", "no ready endpoint of that hostname in that cluster");
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_by_key(|name| distance(name, &first));
        if !names.is_empty() {
            self.item("nearest", &format!("in front of {}.{}.svc there are:", key.name, key.namespace));
            self.list(names, |out, name| out.sub(&name));
        }
    }

    /// The served services whose names are nearest.
    fn nearest(
        &mut self,
        index: &Index,
        store: &Store,
        key: &Option<ServiceKey>,
        show: impl Fn(&ServiceKey) -> String,
    ) {
        let Some(wanted) = key else { return };
        let far = |key: &ServiceKey| {
            distance(key.namespace.as_str(), wanted.namespace.as_str())
                + distance(key.name.as_str(), wanted.name.as_str())
        };
        // The feed waits while we look, so the look is bounded: of a large clusterset first those that share a half of
        // the name, and only where these are none some of the others.
        let half = |key: &&ServiceKey| key.namespace == wanted.namespace || key.name == wanted.name;
        let served = |key: &&ServiceKey| store.get(key).is_some();
        let mut near: Vec<_> = index.services().filter(half).filter(served).take(LOOKED_AT).collect();
        if near.is_empty() {
            near = index.services().filter(served).take(LOOKED_AT).collect();
        }
        let mut near: Vec<_> = near.into_iter().map(|key| (far(key), key)).collect();
        near.sort();
        let mut shown: Vec<_> = near.into_iter().map(|(_, key)| show(key)).collect();
        shown.dedup();
        shown.truncate(NEAREST);
        if shown.is_empty() {
            self.item("nearest", "no service has a name here");
        } else {
            self.item("nearest", &shown.join(", "));
        }
    }
}

/// The labels an endpoint may be known by.
fn host_names(endpoint: &EndpointRef<'_>) -> impl Iterator<Item = String> {
    let dashed = endpoint.hostname.is_none().then(|| dashed_address(endpoint.address));
    let label = endpoint.hostname.or(endpoint.pod);
    label.map(ToOwned::to_owned).into_iter().chain(dashed)
}

fn describe(endpoint: &EndpointRef<'_>) -> String {
    let condition = match endpoint.readiness {
        Readiness::Ready => "ready",
        Readiness::ServingTerminating => "not ready: terminating, still serving",
        Readiness::NotReady => "not ready",
    };
    let name = endpoint.hostname.unwrap_or("(no hostname)");
    format!("{} {name} {condition}", endpoint.address)
}

fn ports(ports: &[Port]) -> String {
    if ports.is_empty() {
        return "none".to_owned();
    }
    let one = |p: &Port| {
        let name = p.name.as_ref().map_or_else(|| "(unnamed)".to_owned(), ToString::to_string);
        format!("{name} {}/{}", p.number, p.protocol.label().trim_start_matches('_').to_uppercase())
    };
    ports.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Edits that turn one text into the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}
