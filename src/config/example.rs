//! The example file, from the one definition of the settings.

use std::fmt::Write;

use super::keys::{Keyed, Shape, Spec};
use super::raw::split;

/// `config/<command>.example.yaml`: every key, its default and what it does.
#[must_use]
pub fn example<K: Keyed>() -> String {
    let (command, prefix) = (K::COMMAND, K::PREFIX);
    let mut out = format!(
        "# Settings of `namesake {command}`, format v1: every key with its default. Used by `namesake {command} --config FILE`.\n\
         #\n\
         # Each key is also a flag (log_format: --log-format) and a variable ({prefix}LOG_FORMAT).\n\
         # A variable wins over this file, a flag over both. Lists are written [a, b]; in a variable a,b.\n\
         # Durations are written 100ms, 5s, 1m30s. Paths count from this file's folder.\n\
         # A key that starts with # has no default.\n\n\
         version: 1\n",
    );
    for section in K::SECTIONS {
        let title = section.title();
        let _ = write!(out, "\n# --- {title} {}\n", "-".repeat(112_usize.saturating_sub(title.len())));
        for spec in K::TABLE.iter().filter(|spec| spec.section == *section) {
            wrap(&mut out, spec.help);
            let _ = writeln!(out, "{}", line(spec));
        }
    }
    out
}

/// `key: default`, or the key alone where there is no default.
fn line<K>(spec: &Spec<K>) -> String {
    let Spec { name, default, value, shape, .. } = spec;
    match (shape, default.is_empty()) {
        (Shape::Many, false) => {
            let parts: Vec<_> = split(default).into_iter().map(|part| format!("\"{part}\"")).collect();
            format!("{name}: [{}]", parts.join(", "))
        }
        (_, false) => format!("{name}: {default}"),
        (Shape::Many, true) => format!("# {name}: [{value}]"),
        (_, true) => format!("# {name}: {value}"),
    }
}

/// A comment in lines of at most 118 columns.
fn wrap(out: &mut String, text: &str) {
    let mut width = 0;
    for word in text.split(' ') {
        if width == 0 || width + 1 + word.len() > 118 {
            out.push_str(if width == 0 { "\n# " } else { "\n#   " });
            width = 3;
        } else {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += word.len();
    }
    out.push_str(".\n");
}
