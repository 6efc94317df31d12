//! Queries that nobody saw: what the kernel dropped because a UDP socket's buffer was full.
//!
//! They are what a client's time-outs come from when a server has too little CPU, and no counter of ours can have
//! them. The kernel counts them for each socket and shows them in `/proc/net/udp`.

use std::net::{IpAddr, SocketAddr};

/// The sockets of this process's network, IPv4 and IPv6.
const TABLES: [&str; 2] = ["/proc/self/net/udp", "/proc/self/net/udp6"];

/// How many queries to these addresses the kernel has dropped since the sockets were opened. A table that cannot be
/// read says nothing.
#[must_use]
pub fn queue_drops(listening: &[SocketAddr]) -> u64 {
    let own: Vec<String> = listening.iter().map(|address| in_table(*address)).collect();
    let texts = TABLES.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    texts.map(|text| sum(&text, &own)).sum()
}

/// The last column of each line whose second is one of `own`.
fn sum(table: &str, own: &[String]) -> u64 {
    let drops = |line: &str| {
        let mut columns = line.split_ascii_whitespace();
        let local = columns.nth(1)?;
        own.iter().any(|own| own == local).then(|| columns.next_back()?.parse::<u64>().ok())?
    };
    table.lines().filter_map(drops).sum()
}

/// An address as the kernel's tables have it: each four octets as one number of the machine, in hexadecimal.
fn in_table(address: SocketAddr) -> String {
    let word = |octets: &[u8; 4]| format!("{:08X}", u32::from_ne_bytes(*octets));
    let ip: String = match address.ip() {
        IpAddr::V4(ip) => word(&ip.octets()),
        IpAddr::V6(ip) => ip.octets().as_chunks().0.iter().map(word).collect(),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_the_address_are_summed_and_others_are_not() {
        let own = in_table("10.0.0.1:53".parse().unwrap());
        let line = |local: &str, drops| {
            format!("  7: {local} 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 9 2 0000 {drops}\n")
        };
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode \
                     ref pointer drops\n"
            .to_owned()
            + &line(&own, 3)
            + &line(&in_table("10.0.0.2:53".parse().unwrap()), 50)
            + &line(&in_table("10.0.0.1:54".parse().unwrap()), 60)
            + &line(&own, 4)
            + "half a line\n";
        assert_eq!(sum(&table, &[own]), 7);
    }
}
