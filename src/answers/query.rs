//! Reading a query: the common shape, and whether it is one.

use super::name::{Folded, QueryName};
use super::rrtype;

/// What a query's OPT says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt {
    /// The UDP size the client can take.
    pub size: u16,
    /// DO.
    pub dnssec_ok: bool,
    /// Whether NSID is asked for (RFC 5001).
    pub nsid: bool,
}

/// A query of the common shape: opcode QUERY, one question of class IN with an uncompressed name and an ordinary
/// type, and no record but at most one well-formed OPT of version 0.
#[derive(Debug, Clone, Copy)]
pub struct Query<'m> {
    /// The name.
    pub name: QueryName<'m>,
    /// The type.
    pub qtype: u16,
    /// The OPT.
    pub opt: Option<Opt>,
}

/// What a message is.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'m> {
    /// Shorter than a header.
    Short,
    /// A response.
    Response,
    /// A query of the common shape.
    Common(Query<'m>),
    /// Anything else.
    Other,
}

/// Octets of a message header (RFC 1035 §4.1.1): id, flags, and four counts of two octets each.
pub(super) const HEADER: usize = 12;

impl<'m> Shape<'m> {
    /// Looks at `message`; `folded` holds its name where that is not in lower case.
    #[must_use]
    #[inline]
    pub fn of(message: &'m [u8], folded: &'m mut Folded) -> Self {
        let Some(header) = message.first_chunk::<HEADER>() else { return Self::Short };
        if header[2] & 0x80 != 0 {
            return Self::Response;
        }
        match Self::common(message, header, folded) {
            Some(query) => Self::Common(query),
            None => Self::Other,
        }
    }

    #[inline]
    fn common(message: &'m [u8], header: &[u8; HEADER], folded: &'m mut Folded) -> Option<Query<'m>> {
        // Opcode QUERY; then QDCOUNT 1, ANCOUNT 0, NSCOUNT 0, and an ARCOUNT of 0 or 1.
        let [_, _, flags, _, counts @ ..] = header;
        let has_opt = match u64::from_be_bytes(*counts) {
            0x0001_0000_0000_0000 => false,
            0x0001_0000_0000_0001 => true,
            _ => return None,
        };
        if flags & 0x78 != 0 {
            return None;
        }
        let name = QueryName::read(&message[HEADER..], folded)?;
        let fixed = message.get(HEADER + name.len()..)?;
        let (&[type_hi, type_lo, class_hi, class_lo], additional) = fixed.split_first_chunk::<4>()?;
        let qtype = u16::from_be_bytes([type_hi, type_lo]);
        if [class_hi, class_lo] != [0, 1] || !ordinary(qtype) {
            return None;
        }
        let opt = if has_opt { Some(Opt::read(additional)?) } else { None };
        Some(Query { name, qtype, opt })
    }
}

/// Whether a type is looked up like any other: not one of those that ask for something else than records.
fn ordinary(qtype: u16) -> bool {
    !matches!(qtype, 0 | rrtype::OPT | rrtype::TKEY..=rrtype::MAILA)
}

impl Opt {
    /// Reads an OPT of version 0 at the start of `bytes`; `None` for any other record.
    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk::<11>()?;
        let [0, 0, 41, size_hi, size_lo, _rcode, 0, flags, _, len_hi, len_lo] = *fixed else { return None };
        let options = rest.get(..usize::from(u16::from_be_bytes([len_hi, len_lo])))?;
        Some(Self {
            size: u16::from_be_bytes([size_hi, size_lo]),
            dnssec_ok: flags & 0x80 != 0,
            nsid: Self::has_nsid(options)?,
        })
    }

    /// Walks the options; `None` where one runs past the end.
    #[inline]
    fn has_nsid(mut options: &[u8]) -> Option<bool> {
        const NSID: [u8; 2] = [0, 3];
        let mut nsid = false;
        while !options.is_empty() {
            let (&[code_hi, code_lo, len_hi, len_lo], rest) = options.split_first_chunk::<4>()?;
            nsid |= [code_hi, code_lo] == NSID;
            options = rest.get(usize::from(u16::from_be_bytes([len_hi, len_lo]))..)?;
        }
        Some(nsid)
    }
}
