//! A set as a zone, for servers that read zone files (RFC 1035 §5).

use std::io::{self, Write};

use crate::set::{Set, ZONE, cluster};

/// Writes the zone: as many names and records as Namesake answers for the same set.
///
/// # Errors
/// Where `out` takes no more.
pub fn write(set: Set, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "$ORIGIN {ZONE}.\n$TTL 5")?;
    writeln!(out, "@ SOA ns.dns hostmaster 1 7200 1800 86400 5\n@ NS ns.dns\nns.dns A 127.0.0.1")?;
    writeln!(out, "dns-version TXT \"1.0.0\"")?;
    for i in 0..set.services {
        let name = set.service(i);
        writeln!(out, "{name}.svc A {}", set.service_address(i))?;
        writeln!(out, "_http._tcp.{name}.svc SRV 0 100 80 {name}.svc")?;
    }
    for i in 0..set.headless {
        let (name, cluster) = (set.headless(i), cluster(i));
        // As Namesake shares the weight out.
        let weight = (100 / set.endpoints).max(1);
        for n in 0..set.endpoints {
            let address = set.endpoint_address(i, n);
            writeln!(out, "{name}.svc A {address}\npod-{n}.cluster-{cluster}.{name}.svc A {address}")?;
            writeln!(out, "_http._tcp.{name}.svc SRV 0 {weight} 8080 pod-{n}.cluster-{cluster}.{name}.svc")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_there_once() {
        let set = Set { services: 3, headless: 2, endpoints: 4, namespaces: 2 };
        let mut text = Vec::new();
        write(set, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 6 + 3 * 2 + 2 * 4 * 3);
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 6 + 3 * 2 + 2 * 4 * 3);
        assert!(text.contains("\npod-3.cluster-1.db-1.ns-1.svc A 100.0.0.7\n"), "{text}");
    }
}
