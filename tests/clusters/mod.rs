//! Folders of clusters, and the program on them.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder of clusters that is gone at the end.
pub struct Folder(TempDir);

impl Folder {
    /// These files, as paths below the folder and their texts.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (file, text) in files {
            folder.write(file, text);
        }
        folder
    }

    /// A copy of the example.
    pub fn example() -> Self {
        let folder = Self::new(&[]);
        let example = root().join("config/sandbox");
        for cluster in fs::read_dir(example).unwrap() {
            let cluster = cluster.unwrap();
            for file in fs::read_dir(cluster.path()).unwrap() {
                let file = file.unwrap();
                let name = format!("{}/{}", cluster.file_name().display(), file.file_name().display());
                folder.write(&name, &fs::read_to_string(file.path()).unwrap());
            }
        }
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, as editors do: beside it first.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let beside = path.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// Changes one text of a file for another, which has to be there.
    pub fn replace(&self, file: &str, from: &str, to: &str) {
        self.replace_all(file, &[(from, to)]);
    }

    /// The same for several at once.
    pub fn replace_all(&self, file: &str, changes: &[(&str, &str)]) {
        let mut text = fs::read_to_string(self.0.path().join(file)).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{file} has no {from:?}");
            text = text.replace(from, to);
        }
        self.write(file, &text);
    }

    pub fn remove(&self, file: &str) {
        let path = self.0.path().join(file);
        if !path.is_dir() || file.is_empty() {
            return if file.is_empty() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() };
        }
        // At once, so that nobody sees half of it.
        let beside = self.0.path().join(format!(".{file}"));
        fs::rename(path, &beside).unwrap();
        fs::remove_dir_all(beside).unwrap();
    }

    /// Runs `namesake plan` on it.
    pub fn plan(&self, args: &[&str]) -> Ran {
        Ran::new(self.path(), Command::new(binary()).arg("plan").arg(self.path()).args(args))
    }
}

/// What a run of the program printed, with `DIR` for the folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn new(dir: &Path, command: &mut Command) -> Self {
        let ran = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&*dir.to_string_lossy(), "DIR");
        Self { code: ran.status.code().unwrap(), out: text(ran.stdout), err: text(ran.stderr) }
    }

    /// What it printed where it succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, &*self.err), (0, ""), "{self:?}");
        self.out
    }
}

/// A Service and its ServiceExport, in `shop`; `extra` goes below the Service's spec, `export` below the other's.
pub fn exported(name: &str, spec: &str, export: &str) -> String {
    let spec = indent(spec, 2);
    let export = if export.is_empty() { String::new() } else { format!("spec:\n{}", indent(export, 2)) };
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  selector: {{app: {name}}}\n\
         {spec}---\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata:\n  name: {name}\n  \
         namespace: shop\n{export}"
    )
}

/// A ready pod of the Service `name` in `shop`.
pub fn pod(name: &str, pod: &str, ip: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {pod}\n  namespace: shop\n  labels: {{app: {name}}}\n\
         status:\n  podIP: {ip}\n"
    )
}

fn indent(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
}

pub fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_namesake").into()
}

pub fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// Fails where `printed` is not what stands in `tests/clusters/expected`, and leaves it where a person can look at it.
#[track_caller]
pub fn must_be(file: &str, printed: &str) {
    let expected = root().join("tests/clusters/expected").join(file);
    let text = fs::read_to_string(&expected).unwrap_or_default();
    if text != printed {
        let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        fs::write(&new, printed).unwrap();
        let differs = text.lines().zip(printed.lines()).find(|(a, b)| a != b);
        let (expected, new) = (expected.display(), new.display());
        panic!("{file} is not what was printed, first here: {differs:?}\nIf that is meant: cp {new} {expected}");
    }
}
