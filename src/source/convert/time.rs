//! RFC 3339 times.

use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;

/// The time of `text`, where it is one after 1970. Only a metric needs it, so a wrong one is no one's trouble.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let time = text.parse::<Timestamp>().ok()?;
    (time > Timestamp::UNIX_EPOCH).then(|| SystemTime::from(time))
}

/// The seconds since 1970 of `text`, the resolution of times in the Kubernetes API.
pub(super) fn seconds(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_second)
}
