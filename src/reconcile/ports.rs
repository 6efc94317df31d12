//! The union of ports, and which port of a cluster serves which port of the union (controller.md 2.4).

use super::objects::{ServicePort, SlicePort};
use crate::model::Protocol;

/// The merged ports of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ports {
    /// As they are written: every name there where there are several (R42).
    pub list: Vec<ServicePort>,
    /// The names that their exporters gave them, in the same order.
    exported: Vec<Box<str>>,
}

/// The union of the lists, the oldest export's first: a port whose name, or whose protocol and number, is there
/// already gives way to the older one (R38, R43).
pub(super) fn union<'a>(lists: impl Iterator<Item = &'a [ServicePort]>) -> Ports {
    let mut list: Vec<ServicePort> = Vec::new();
    for port in lists.flatten() {
        let taken = |older: &ServicePort| {
            older.name == port.name || (older.protocol == port.protocol && older.port == port.port)
        };
        if !list.iter().any(taken) {
            list.push(ServicePort { target: None, ..port.clone() });
        }
    }
    let exported = list.iter().map(|port| port.name.clone()).collect();
    name_all(&mut list);
    Ports { list, exported }
}

/// A single port may go without a name; of several each needs one (R42).
fn name_all(list: &mut [ServicePort]) {
    if list.len() < 2 {
        return;
    }
    for at in 0..list.len() {
        let Some(port) = list.get(at).filter(|port| port.name.is_empty()) else { continue };
        let stem = stem(port);
        let free = |name: &str| list.iter().all(|other| *other.name != *name);
        let name = std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}-{n}"))).find(|name| free(name));
        if let (Some(port), Some(name)) = (list.get_mut(at), name) {
            port.name = name.into();
        }
    }
}

/// What a port without a name is called among several: `tcp-80`.
fn stem(port: &ServicePort) -> String {
    format!("{}-{}", lower(port.protocol), port.port)
}

/// The protocol in lower case.
fn lower(protocol: Protocol) -> &'static str {
    protocol.label().trim_start_matches('_')
}

impl Ports {
    /// The name under which a port of one cluster's Service is served, if it is (R40): its own number has to be the
    /// union's. Under another name it is served only if `rename`.
    #[must_use]
    pub fn serves(&self, port: &ServicePort, rename: bool) -> Option<&str> {
        let same = |merged: &ServicePort| merged.protocol == port.protocol && merged.port == port.port;
        if let Some(at) = self.exported.iter().position(|name| *name == port.name) {
            return self.list.get(at).filter(|merged| same(merged)).map(|merged| &*merged.name);
        }
        // What was given to a port without a name is not another name.
        let given = |merged: &ServicePort| port.name.is_empty() && merged.name.starts_with(&stem(merged));
        self.list.iter().find(|merged| same(merged) && (rename || given(merged))).map(|merged| &*merged.name)
    }

    /// The ports of a mirrored slice: those of the source slice that serve a port of the union, under its name, with
    /// the number on which its endpoints listen (R41).
    #[must_use]
    pub fn of_slice(&self, service: &[ServicePort], slice: &[SlicePort], rename: bool) -> Vec<SlicePort> {
        let mut ports: Vec<SlicePort> = slice
            .iter()
            .filter_map(|port| {
                let own = service.iter().find(|own| own.name == port.name && own.protocol == port.protocol)?;
                Some(SlicePort { name: self.serves(own, rename)?.into(), ..port.clone() })
            })
            .collect();
        ports.sort();
        ports
    }

    /// Whether a cluster's list says the same as the union, in whatever order (R39).
    #[must_use]
    pub fn agrees(&self, list: &[ServicePort]) -> bool {
        let same = |at: usize, port: &ServicePort| {
            self.exported.get(at).is_some_and(|name| *name == port.name)
                && self.list.get(at).is_some_and(|merged| {
                    (merged.protocol, merged.port, &merged.app_protocol)
                        == (port.protocol, port.port, &port.app_protocol)
                })
        };
        list.len() == self.list.len() && (0..self.list.len()).all(|at| list.iter().any(|port| same(at, port)))
    }

    /// For a message: `http 80/TCP, 443/TCP`.
    #[must_use]
    pub fn describe(&self) -> String {
        let port = |name: &str, port: &ServicePort| {
            let protocol = lower(port.protocol).to_ascii_uppercase();
            let name = if name.is_empty() { String::new() } else { format!("{name} ") };
            let app = port.app_protocol.as_ref().map(|app| format!(" ({app})")).unwrap_or_default();
            format!("{name}{}/{protocol}{app}", port.port)
        };
        self.exported.iter().zip(&self.list).map(|(n, p)| port(n, p)).collect::<Vec<_>>().join(", ")
    }
}
