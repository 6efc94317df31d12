//! Log lines: as text in CoreDNS's manner, or as JSON.
//!
//! Text: `[INFO] source: message key=value`, without a time, since whatever collects the lines (a container runtime,
//! journald) stamps them; the word before the colon is the part of Namesake, or another crate's name. JSON: one object
//! a line, with `time`, `level`, `msg` and `target` as CoreDNS 1.15 and Go's slog name them, and the fields beside
//! them. Everything goes to stdout, as CoreDNS's log does. What came from outside can't break a line in two: control
//! characters are escaped.

mod sink;

use std::fmt::{self, Write};
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use sink::Sink;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// `[INFO] source: message key=value`
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What other crates say at most, unless the operator names them: what they have to tell, we tell ourselves. The client
/// calls every failed request an error, as often as it is tried again; we tell what is wrong once.
const QUIET: &str = "kube=warn,kube_client=off,kube_core=warn,hyper=warn,hyper_util=warn,rustls=warn,tower=warn,\
                     h2=warn,hickory_proto=warn,hickory_net=warn,hickory_server=warn";

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is no list of directives.
    #[error(
        "log level {given:?} is not understood ({reason}); use error, warn, info, debug or trace, or RUST_LOG's form such as \"info,namesake::source=debug\""
    )]
    Filter {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Logging was set up before.
    #[error("logging is already set up in this process")]
    Twice,
    /// There is no thread for it.
    #[error("the thread that writes the log can't be started: {0}; raise the limit on threads")]
    Thread(io::Error),
}

/// The one that [`init`] made.
static SINK: OnceLock<Sink> = OnceLock::new();

/// Sets up logging to stdout for the whole process. `filter` is a level, or directives in `RUST_LOG`'s form; without
/// a level of its own it means `info`. Nobody ever waits for stdout: lines that it has no room for are lost, and
/// their number is told when it has room again.
///
/// # Errors
/// If the filter is not understood, logging was set up before, or no thread can be started.
pub fn init(format: LogFormat, filter: &str) -> Result<(), TelemetryError> {
    let sink = Sink::start(io::stdout(), move |lost| lost_line(format, lost)).map_err(TelemetryError::Thread)?;
    let subscriber = subscriber(format, filter, sink.clone())?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| TelemetryError::Twice)?;
    SINK.set(sink).map_err(|_| TelemetryError::Twice)
}

/// Waits until all that was logged is written, but not longer than `within`: for the end of the process.
pub fn flush(within: Duration) {
    if let Some(sink) = SINK.get() {
        sink.flush(within);
    }
}

/// Tells that lines are missing.
fn lost_line(format: LogFormat, lost: u64) -> String {
    let message = format!("{lost} lines were lost here: whoever reads this log was too slow");
    match format {
        LogFormat::Text => format!("{}telemetry: {message}\n", tag(Level::WARN)),
        LogFormat::Json => format!(
            "{{\"time\":\"{}\",\"level\":\"WARN\",\"msg\":{},\"target\":\"telemetry\",\"lost\":{lost}}}\n",
            rfc3339(SystemTime::now()),
            json_string(&message),
        ),
    }
}

/// The same as [`init`] with any writer, for whoever wants to look at the lines.
///
/// # Errors
/// If the filter is not understood.
pub fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Later directives win over earlier ones for the same target, and special ones over general ones.
    let filter = EnvFilter::builder()
        .parse(format!("info,{QUIET},{filter}"))
        .map_err(|error| TelemetryError::Filter { given: filter.to_owned(), reason: error.to_string() })?;
    Ok(tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        // Else a line that can't be written is told to stderr, and a closed stderr panics whoever had something to say.
        .log_internal_errors(false)
        .event_format(Lines { format })
        .finish())
}

/// Writes one event as one line.
struct Lines {
    format: LogFormat,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (level, target) = (*event.metadata().level(), part(event.metadata().target()));
        match self.format {
            LogFormat::Text => writeln!(writer, "{}{target}: {}", tag(level), fields.text()),
            LogFormat::Json => writeln!(
                writer,
                "{{\"time\":\"{}\",\"level\":\"{}\",\"msg\":{},\"target\":{}{}}}",
                rfc3339(SystemTime::now()),
                level,
                json_string(&fields.message),
                json_string(target),
                fields.json(),
            ),
        }
    }
}

/// CoreDNS's word for a level.
fn tag(level: Level) -> &'static str {
    match level {
        Level::ERROR => "[ERROR] ",
        Level::WARN => "[WARNING] ",
        Level::INFO => "[INFO] ",
        Level::DEBUG | Level::TRACE => "[DEBUG] ",
    }
}

/// The part of Namesake that speaks (`namesake::source::kube` → `source`), or another crate's name.
fn part(target: &str) -> &str {
    let own = target.strip_prefix("namesake::").unwrap_or(target);
    own.split("::").next().unwrap_or(own)
}

/// A value of a field.
enum Value {
    Text(String),
    /// A number or truth value: no quotes in JSON.
    Bare(String),
}

/// The message and the fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            let (Value::Text(text) | Value::Bare(text)) = value;
            self.message = text;
        } else {
            self.others.push((field.name(), value));
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        escape_controls(&self.message, &mut text);
        for (name, value) in &self.others {
            text.push_str(if text.is_empty() { "" } else { " " });
            text.push_str(name);
            text.push('=');
            match value {
                Value::Bare(value) => text.push_str(value),
                Value::Text(value) if value.is_empty() || value.contains([' ', '"', '=']) => {
                    text.push_str(&json_string(value));
                }
                Value::Text(value) => escape_controls(value, &mut text),
            }
        }
        text
    }

    fn json(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.others {
            // Never two equal keys.
            let prefix = if matches!(*name, "time" | "level" | "msg" | "target") { "field_" } else { "" };
            text.push_str(&format!(",\"{prefix}{name}\":"));
            match value {
                Value::Bare(value) => text.push_str(value),
                Value::Text(value) => text.push_str(&json_string(value)),
            }
        }
        text
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, Value::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, Value::Text(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::Bare(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Value::Bare(value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::Bare(value.to_string()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON knows no infinity.
        let text = value.to_string();
        self.add(field, if value.is_finite() { Value::Bare(text) } else { Value::Text(text) });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        self.add(field, Value::Text(text));
    }
}

fn escape_controls(text: &str, out: &mut String) {
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
}

/// The text in quotes, as JSON wants it.
#[must_use]
pub fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character.is_control() => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// A time as RFC 3339 in UTC, to the microsecond: `2026-11-29T20:00:00.000213Z`. Times before 1970 are 1970's begin.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Days to a date of the Gregorian calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_micros(),
    )
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
