//! What client_golang's process collector shows and the `prometheus` crate's does not.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::family::Family;
use super::table::{Metric, PROCESS_RECEIVED, PROCESS_TRANSMITTED, PROCESS_VIRTUAL_MAX};

const SHOWN: [&Metric; 3] = [&PROCESS_VIRTUAL_MAX, &PROCESS_RECEIVED, &PROCESS_TRANSMITTED];

/// Reads `/proc/self` at each scrape; where it can't be read (another system, a sandbox) the families are absent.
pub(super) struct ProcessExtras {
    descs: Vec<Desc>,
}

impl ProcessExtras {
    pub(super) fn new() -> Self {
        Self { descs: SHOWN.iter().filter_map(|metric| metric.desc().ok()).collect() }
    }
}

impl Collector for ProcessExtras {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        if let Some(limit) = address_space(&limits) {
            families.push(Family::single(&PROCESS_VIRTUAL_MAX, limit));
        }
        let netstat = std::fs::read_to_string("/proc/self/net/netstat").unwrap_or_default();
        for (metric, field) in [(&PROCESS_RECEIVED, "InOctets"), (&PROCESS_TRANSMITTED, "OutOctets")] {
            if let Some(bytes) = ip_ext(&netstat, field) {
                families.push(Family::single(metric, bytes));
            }
        }
        families
    }
}

/// The soft limit of the address space. Without one it is the largest number, as client_golang shows it.
fn address_space(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX as f64),
        number => number.parse().ok(),
    }
}

/// A number of the `IpExt` lines: a line of names, then a line of values. It counts the network namespace, which in a
/// pod is the pod.
fn ip_ext(netstat: &str, field: &str) -> Option<f64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let position = lines.next()?.split_whitespace().position(|name| name == field)?;
    lines.next()?.split_whitespace().nth(position)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_octets_are_read_by_name() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max cpu time              unlimited            unlimited            seconds   \n\
                      Max address space         8192                 unlimited            bytes     \n";
        assert_eq!(address_space(limits), Some(8192.0));
        assert_eq!(address_space("Max address space unlimited unlimited bytes"), Some(u64::MAX as f64));
        assert_eq!(address_space("nothing"), None);
        let netstat = "TcpExt: InOctets\nTcpExt: 9\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 1 20 300\n";
        assert_eq!(ip_ext(netstat, "InOctets"), Some(20.0));
        assert_eq!(ip_ext(netstat, "OutOctets"), Some(300.0));
        assert_eq!(ip_ext(netstat, "Elsewhere"), None);
        assert_eq!(ip_ext("IpExt: InOctets", "InOctets"), None);
    }
}
