//! Our OPT record (RFC 6891) and the extended errors in it (RFC 8914).

/// Extended DNS errors that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ede {
    /// 3: the data may be old, since the API server is out of reach.
    StaleAnswer,
    /// 14: the first lists are not complete yet.
    NotReady,
    /// 18: zone transfer is not allowed.
    Prohibited,
    /// 20: the name is in none of our zones.
    NotAuthoritative,
}

impl Ede {
    /// The INFO-CODE of RFC 8914 §4.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::StaleAnswer => 3,
            Self::NotReady => 14,
            Self::Prohibited => 18,
            Self::NotAuthoritative => 20,
        }
    }
}

/// Octets of an OPT record without options:
///
/// ```text
///  0      owner: the root (0)
///  1..3   type 41
///  3..5   class: the UDP size we state (RFC 6891 §6.2.3)
///  5      upper bits of the rcode
///  6      version 0
///  7..9   flags: DO is the topmost bit (RFC 3225)
///  9..11  length of the options
/// ```
pub(super) const OPT_LEN: usize = 11;

/// Our OPT, without its options, of which there are `options` octets.
#[inline]
pub(super) fn opt(bufsize: u16, dnssec_ok: bool, options: usize) -> [u8; OPT_LEN] {
    let ([size_hi, size_lo], [len_hi, len_lo]) = (bufsize.to_be_bytes(), (options as u16).to_be_bytes());
    let flags = if dnssec_ok { 0x80 } else { 0 };
    [0, 0, 41, size_hi, size_lo, 0, 0, flags, 0, len_hi, len_lo]
}

/// Octets of an extended error without text.
pub(super) const EDE_LEN: usize = 6;

/// An extended error without text: code 15, length 2, INFO-CODE (RFC 8914 §2).
#[inline]
pub(super) fn extended_error(ede: Ede) -> [u8; EDE_LEN] {
    let [code_hi, code_lo] = ede.code().to_be_bytes();
    [0, 15, 0, 2, code_hi, code_lo]
}
