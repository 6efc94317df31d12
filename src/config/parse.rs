//! Single values: text in, value or reason out. The reason comes with a remedy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::model::Label;

/// Why a value is refused, and what to do.
pub(super) type Refusal = (String, String);

fn refuse<T>(why: impl Into<String>, remedy: impl Into<String>) -> Result<T, Refusal> {
    Err((why.into(), remedy.into()))
}

/// A whole number between two bounds.
pub(super) fn number(text: &str, least: u64, most: u64, unit: &str) -> Result<u64, Refusal> {
    let space = if unit.is_empty() { "" } else { " " };
    let remedy = format!("give {least} to {most}{space}{unit}");
    match text.parse::<u64>() {
        Ok(n) if n < least => refuse(format!("less than {least}"), remedy),
        Ok(n) if n > most => refuse(format!("more than {most}"), remedy),
        Ok(n) => Ok(n),
        Err(_) => refuse("not a whole number", remedy),
    }
}

/// `true` or `false`.
pub(super) fn switch(text: &str) -> Result<bool, Refusal> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => refuse("neither true nor false", "give one of them"),
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, Refusal> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let list: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    refuse("no such choice", format!("give {}", list.join(" or ")))
}

/// Any text that is there.
pub(super) fn filled(text: &str) -> Result<String, Refusal> {
    if text.is_empty() { refuse("empty", "give a name, or leave it out") } else { Ok(text.to_owned()) }
}

/// Text for a TXT record's one string (RFC 1035 §3.3.14).
pub(super) fn txt(text: &str) -> Result<String, Refusal> {
    match text.len() {
        1..=255 if text.chars().all(|c| !c.is_control()) => Ok(text.to_owned()),
        0 => refuse("empty", "give 1 to 255 bytes"),
        1..=255 => refuse("a control character", "give printable text"),
        long => refuse(format!("{long} bytes"), "give 1 to 255 bytes"),
    }
}

/// A zone: in lower case, without final dot.
pub(super) fn zone(text: &str) -> Result<String, Refusal> {
    // Room for `<host>.<cluster>.<service>.<namespace>.svc` must remain of the 255 bytes of a name.
    const LONGEST: usize = 190;
    const REMEDY: &str = "give a domain such as clusterset.local";
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return refuse("the root can't be served", REMEDY);
    }
    if name.len() > LONGEST {
        return refuse(format!("{} bytes leave no room for names below it", name.len()), REMEDY);
    }
    if let Some(bad) = name.split('.').find(|label| Label::new(label).is_none()) {
        return refuse(format!("{bad:?} is no DNS label (1 to 63 letters, digits and dashes)"), REMEDY);
    }
    Ok(name.to_ascii_lowercase())
}

/// A namespace (RFC 1123 label).
pub(super) fn namespace(text: &str) -> Result<String, Refusal> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let fits = Label::new(text).is_some() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-');
    if fits {
        Ok(text.to_owned())
    } else {
        refuse("no name of a namespace", "give 1 to 63 of a-z, 0-9 and -, as `kubectl get namespaces` shows it")
    }
}

/// An address that `ns.dns.<zone>` may have.
pub(super) fn nameserver(text: &str) -> Result<IpAddr, Refusal> {
    const REMEDY: &str = "give an address that clients reach this server at, such as its Service's cluster IP";
    match text.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() || ip.is_multicast() => refuse("not an address of one server", REMEDY),
        Ok(ip) => Ok(ip),
        Err(_) => refuse("no IP address", REMEDY),
    }
}

/// An address to listen on, or every address of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bind {
    /// `ADDR:PORT`.
    One(SocketAddr),
    /// `:PORT`.
    Everywhere(u16),
}

/// `ADDR:PORT` or `:PORT`; `port` is for the remedy.
pub(super) fn bind(text: &str, port: u16) -> Result<Bind, Refusal> {
    let example = format!("write ADDR:PORT, such as 127.0.0.1:{port}, [::1]:{port} or :{port}");
    let everywhere = text.strip_prefix(':').or_else(|| text.strip_prefix("*:"));
    if let Some(port) = everywhere.and_then(|port| port.parse::<u16>().ok()) {
        return Ok(Bind::Everywhere(port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.ip() {
            ip if ip.is_multicast() => refuse("a multicast address", example),
            IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
                refuse("an IPv4 address inside an IPv6 one", "write the IPv4 address itself")
            }
            _ => Ok(Bind::One(address)),
        };
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => refuse("no port", format!("write {ip}:{port}")),
        Ok(IpAddr::V6(ip)) => refuse("no port", format!("write [{ip}]:{port}")),
        Err(_) => {
            let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
            if host.bytes().any(|b| b.is_ascii_alphabetic()) && !host.contains(':') {
                refuse(format!("{host:?} is no IP address"), example)
            } else {
                refuse("no address with a port", example)
            }
        }
    }
}

impl Bind {
    /// Addresses for sockets of one family each.
    pub(super) fn each_family(self, ipv6: bool) -> Vec<SocketAddr> {
        let v4 = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let v6 = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        match self {
            Self::One(address) => vec![address],
            Self::Everywhere(port) if ipv6 => vec![v4(port), v6(port)],
            Self::Everywhere(port) => vec![v4(port)],
        }
    }

    /// The address of one socket, for both families where the machine has both.
    pub(super) fn one_socket(self, ipv6: bool) -> SocketAddr {
        match self {
            Self::One(address) => address,
            Self::Everywhere(port) if ipv6 => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            Self::Everywhere(port) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        }
    }
}
