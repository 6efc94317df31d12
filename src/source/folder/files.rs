//! The files of a folder: which count, what they hold, and whether they changed.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::{FileError, FileProblem};

/// How long after its last change a file may change again without a trace: time stamps are coarse, so a second
/// write of the same length right after our reading can look the same. Until then contents are compared.
const RACY: Duration = Duration::from_secs(2);

/// One file as the file system sees it. The same path can lead to another file (a ConfigMap's mount swaps a symbolic
/// link), hence device and inode; whatever is done to a file also moves its change time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A look at the folder, cheap enough for every poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    stamps: Vec<Stamp>,
}

impl Look {
    /// Looks at every file below `dir` that counts: `*.yaml`, `*.yml` and `*.json`, in the order of their paths.
    ///
    /// What begins with a dot does not count, as for most tools; that also leaves out the `..data` folders of a
    /// ConfigMap's mount, whose files are reached through the links beside them.
    pub(super) fn at(dir: &Path) -> Result<Self, FileError> {
        let error = |problem| FileError::new(dir.display().to_string(), 0, problem);
        match fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(error(FileProblem::NotAFolder)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(error(FileProblem::NoFolder)),
            Err(e) => return Err(error(FileProblem::Unreadable(e.to_string()))),
        }
        let mut stamps = Vec::new();
        walk(dir, &mut HashSet::new(), &mut stamps)?;
        stamps.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { stamps })
    }

    /// Whether a file may have changed since this look without showing it in a later one.
    pub(super) fn racy(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.stamps.iter().any(|stamp| {
            let changed = Duration::from_secs(u64::try_from(stamp.changed.0).unwrap_or_default());
            // Not what was changed in the future, by another clock or before this one was set back: whatever is done
            // now shows. Else the whole folder would be read four times a second until the clock gets there.
            changed.abs_diff(now) < RACY
        })
    }

    /// The contents of the files, each with the path to show.
    pub(super) fn read(&self) -> Result<Texts, FileError> {
        let mut texts = Vec::with_capacity(self.stamps.len());
        for stamp in &self.stamps {
            let shown = stamp.path.display().to_string();
            match fs::read(&stamp.path).map(String::from_utf8) {
                Ok(Ok(text)) => texts.push((shown, text)),
                Ok(Err(_)) => return Err(FileError::new(shown, 0, FileProblem::NotUtf8)),
                Err(e) => return Err(FileError::new(shown, 0, FileProblem::Unreadable(e.to_string()))),
            }
        }
        Ok(Texts(texts))
    }
}

/// What the files of a folder say.
#[derive(Debug)]
pub(super) struct Texts(Vec<(String, String)>);

impl Texts {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(file, text)| (file.as_str(), text.as_str()))
    }

    pub(super) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}

fn walk(dir: &Path, visited: &mut HashSet<PathBuf>, stamps: &mut Vec<Stamp>) -> Result<(), FileError> {
    let failed = |path: &Path, e: std::io::Error| {
        FileError::new(path.display().to_string(), 0, FileProblem::Unreadable(e.to_string()))
    };
    // A link back up must not lead round in circles.
    if !visited.insert(dir.canonicalize().map_err(|e| failed(dir, e))?) {
        return Ok(());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| failed(dir, e))? {
        paths.push(entry.map_err(|e| failed(dir, e))?.path());
    }
    paths.sort();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden {
            continue;
        }
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            // Gone since it was listed, or a link to nowhere: what does not exist says nothing.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(failed(&path, e)),
        };
        if meta.is_dir() {
            walk(&path, visited, stamps)?;
        } else if meta.is_file() && counts(&path) {
            stamps.push(Stamp {
                device: meta.dev(),
                inode: meta.ino(),
                length: meta.len(),
                modified: (meta.mtime(), meta.mtime_nsec()),
                changed: (meta.ctime(), meta.ctime_nsec()),
                path,
            });
        }
    }
    Ok(())
}

fn counts(path: &Path) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_just_now_may_change_without_a_trace() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
        let racy = |changed| {
            let (path, device, inode, length) = (PathBuf::new(), 1, 2, 3);
            let stamp = Stamp { path, device, inode, length, modified: (changed, 0), changed: (changed, 0) };
            Look { stamps: vec![stamp] }.racy()
        };
        assert!(racy(now));
        assert!(!racy(now - 10), "long ago");
        assert!(!racy(now + 3600), "a clock that was set back is no reason to read everything all the time");
    }
}
