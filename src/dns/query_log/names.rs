//! Names of types and classes as CoreDNS writes them (miekg/dns 1.1.73), which differ here and there from IANA's:
//! `None`, `Reserved`, `NSAP-PTR`, and no name for class ANY (`dns.md` 2.5).

use std::borrow::Cow;

/// Every type that has a name, by number.
#[rustfmt::skip]
static TYPES: [(u16, &str); 88] = [
    (0, "None"), (1, "A"), (2, "NS"), (3, "MD"), (4, "MF"), (5, "CNAME"), (6, "SOA"), (7, "MB"), (8, "MG"), (9, "MR"),
    (10, "NULL"), (12, "PTR"), (13, "HINFO"), (14, "MINFO"), (15, "MX"), (16, "TXT"), (17, "RP"), (18, "AFSDB"),
    (19, "X25"), (20, "ISDN"), (21, "RT"), (23, "NSAP-PTR"), (24, "SIG"), (25, "KEY"), (26, "PX"), (27, "GPOS"),
    (28, "AAAA"), (29, "LOC"), (30, "NXT"), (31, "EID"), (32, "NIMLOC"), (33, "SRV"), (34, "ATMA"), (35, "NAPTR"),
    (36, "KX"), (37, "CERT"), (39, "DNAME"), (41, "OPT"), (42, "APL"), (43, "DS"), (44, "SSHFP"), (45, "IPSECKEY"),
    (46, "RRSIG"), (47, "NSEC"), (48, "DNSKEY"), (49, "DHCID"), (50, "NSEC3"), (51, "NSEC3PARAM"), (52, "TLSA"),
    (53, "SMIMEA"), (55, "HIP"), (56, "NINFO"), (57, "RKEY"), (58, "TALINK"), (59, "CDS"), (60, "CDNSKEY"),
    (61, "OPENPGPKEY"), (62, "CSYNC"), (63, "ZONEMD"), (64, "SVCB"), (65, "HTTPS"), (99, "SPF"), (100, "UINFO"),
    (101, "UID"), (102, "GID"), (103, "UNSPEC"), (104, "NID"), (105, "L32"), (106, "L64"), (107, "LP"),
    (108, "EUI48"), (109, "EUI64"), (128, "NXNAME"), (249, "TKEY"), (250, "TSIG"), (251, "IXFR"), (252, "AXFR"),
    (253, "MAILB"), (254, "MAILA"), (255, "ANY"), (256, "URI"), (257, "CAA"), (258, "AVC"), (260, "AMTRELAY"),
    (261, "RESINFO"), (32768, "TA"), (32769, "DLV"), (65535, "Reserved"),
];

/// The type's name, or `TYPE65280`.
pub(super) fn type_name(number: u16) -> Cow<'static, str> {
    let known = TYPES.binary_search_by_key(&number, |(number, _)| *number).ok().and_then(|index| TYPES.get(index));
    known.map_or_else(|| format!("TYPE{number}").into(), |(_, name)| (*name).into())
}

/// The class's name, or `CLASS255`.
pub(super) fn class_name(number: u16) -> Cow<'static, str> {
    match number {
        1 => "IN".into(),
        2 => "CS".into(),
        3 => "CH".into(),
        4 => "HS".into(),
        254 => "NONE".into(),
        _ => format!("CLASS{number}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_sorted_and_found() {
        assert!(TYPES.is_sorted_by_key(|(number, _)| *number));
        for (number, name) in TYPES {
            assert_eq!(type_name(number), name);
        }
        assert_eq!(type_name(65280), "TYPE65280");
        assert_eq!(type_name(0), "None");
        assert_eq!(class_name(1), "IN");
        assert_eq!(class_name(255), "CLASS255");
    }
}
