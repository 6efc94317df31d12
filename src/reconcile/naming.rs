//! Names of what we write.

use sha2::{Digest, Sha256};

use super::objects::Family;
use crate::model::{ClusterId, Label, ServiceKey};

/// RFC 4648 extended hex, lower case.
const BASE32HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// How many characters of the hash a name carries.
const HASH_LENGTH: usize = 10;

/// Most bytes of an object's name (a DNS subdomain).
const LONGEST_NAME: usize = 253;

/// The start of every derived name.
pub const DERIVED_PREFIX: &str = "derived-";

/// The length of every derived name.
pub const DERIVED_LENGTH: usize = DERIVED_PREFIX.len() + HASH_LENGTH;

/// The name of the derived Service: the first 50 bits of the SHA-256 of `namespace/name` (controller.md 1.7), the same
/// as the reference implementation's and Cilium's.
#[must_use]
pub fn derived(key: &ServiceKey) -> Label {
    let text = format!("{DERIVED_PREFIX}{}", hash(&key.to_string()));
    // Always a label: letters, digits and dashes, 18 bytes.
    Label::new(&text).unwrap_or_else(|| key.name.clone())
}

/// Whether `name` has the form of a derived name.
#[must_use]
pub(super) fn is_derived(name: &str) -> bool {
    let hash = name.strip_prefix(DERIVED_PREFIX).unwrap_or_default();
    hash.len() == HASH_LENGTH && hash.bytes().all(|b| BASE32HEX.contains(&b))
}

/// Where the derived Service of `key` stands.
#[must_use]
pub fn derived_key(key: &ServiceKey) -> ServiceKey {
    ServiceKey { namespace: key.namespace.clone(), name: derived(key) }
}

/// Names for mirrored slices of one source cluster, the preferred one first, without end (controller.md R62):
/// `derived-<hash>-<cluster id>`, then with `-2`, `-3`, …; slices of a second family with `-ipv6` (or `-ipv4`) before
/// the number.
pub fn slice_names(derived: &Label, source: &ClusterId, second: Option<Family>) -> impl Iterator<Item = Box<str>> {
    let mut base = format!("{derived}-{source}");
    if let Some(family) = second {
        base.push('-');
        base.push_str(&family.as_str().to_ascii_lowercase());
    }
    (1_usize..).map(move |n| {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        bounded(&base, &suffix)
    })
}

/// `base` with `suffix`, shortened by a hash in place of its end where it would be too long for a name.
fn bounded(base: &str, suffix: &str) -> Box<str> {
    if base.len() + suffix.len() <= LONGEST_NAME {
        return format!("{base}{suffix}").into();
    }
    let keep = LONGEST_NAME - suffix.len() - HASH_LENGTH - 1;
    let start: String = base.chars().take(keep).collect();
    format!("{}-{}{suffix}", start.trim_end_matches(['-', '.']), hash(base)).into()
}

/// The first characters of the base32hex of the SHA-256 of `text`.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let bits = digest.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let digit = |n: usize| BASE32HEX.get((bits >> (59 - 5 * n)) as usize & 31).copied().unwrap_or(b'0');
    (0..HASH_LENGTH).map(|n| char::from(digit(n))).collect()
}
