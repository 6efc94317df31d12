//! Ports of imports and slices.

use std::sync::Arc;

use super::object::{self, Many, entries};
use super::{quoted, skip};
use crate::model::{Label, Port, Protocol, SkipReason, Skipped};

/// The ports of the list at `place`.
///
/// A port without protocol is TCP (`dns.md` V29). One whose name can't be a label is kept as an unnamed one: it has
/// no name of its own, but is there at the bare service name.
pub(super) fn convert(place: &str, ports: Many<object::Port>, skipped: &mut Vec<Skipped>) -> Arc<[Port]> {
    let mut bad = |what| skipped.push(skip(SkipReason::BadPort, what));
    let mut kept = Vec::new();
    for (i, port) in entries(ports) {
        let Some(protocol) = Protocol::new(port.protocol.as_deref()) else {
            let text = port.protocol.unwrap_or_default();
            bad(format!("{place}[{i}].protocol: {} is none of TCP, UDP and SCTP", quoted(&text)));
            continue;
        };
        let number = match port.port.map(u16::try_from) {
            Some(Ok(number)) if number != 0 => number,
            Some(_) => {
                let number = port.port.unwrap_or_default();
                bad(format!("{place}[{i}].port: {number} is no port number, these are 1 to 65535"));
                continue;
            }
            None => {
                bad(format!("{place}[{i}].port: there is no number"));
                continue;
            }
        };
        let name = port.name.filter(|name| !name.is_empty()).and_then(|name| {
            let label = name_label(&name);
            if label.is_none() {
                bad(format!("{place}[{i}].name: {} can't be a DNS label; the port counts as unnamed", quoted(&name)));
            }
            label
        });
        kept.push(Port { name, protocol, number });
    }
    kept.into()
}

/// The name of a port, where `_<name>` fits into a label too (RFC 2782).
fn name_label(name: &str) -> Option<Label> {
    Label::new(name).filter(|label| label.as_str().len() < 63)
}
