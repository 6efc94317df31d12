//! Writes OCI image archives: images of files of this machine, without a container engine and without a registry.
//!
//! One archive may hold several images, and images may share layers: what containerd has unpacked once it does not
//! unpack again. The same files give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Doing, Error, Result};

/// Part of every [key](ImageArchive::key): an archive that was written in another way is another archive.
const FORMAT: &str = "1";

/// Files, links and folders that one layer puts into an image. Paths in the image are absolute.
#[derive(Clone, Default)]
pub struct Layer {
    files: BTreeMap<String, PathBuf>,
    links: BTreeMap<String, String>,
    folders: BTreeMap<String, u32>,
}

impl Layer {
    /// A layer with nothing in it.
    pub fn new() -> Layer {
        Layer::default()
    }

    /// Adds a file of this machine as `path`, executable if it is so here.
    pub fn file(mut self, path: &str, source: impl Into<PathBuf>) -> Layer {
        self.files.insert(path.to_owned(), source.into());
        self
    }

    /// Adds a program of this machine as `path`, together with the shared libraries and the loader that it needs.
    pub fn program(mut self, path: &str, source: impl AsRef<Path>) -> Result<Layer> {
        for library in libraries(source.as_ref())? {
            self.files.insert(library.clone(), PathBuf::from(library));
        }
        Ok(self.file(path, source.as_ref()))
    }

    /// Adds a symbolic link.
    pub fn link(mut self, path: &str, target: &str) -> Layer {
        self.links.insert(path.to_owned(), target.to_owned());
        self
    }

    /// Adds a folder; those above files and links are made anyway, readable by everybody.
    pub fn folder(mut self, path: &str, mode: u32) -> Layer {
        self.folders.insert(path.to_owned(), mode);
        self
    }

    /// Leaves out what the layers below have already, such as the C library.
    pub fn on_top_of(mut self, below: &Layer) -> Layer {
        self.files.retain(|path, source| below.files.get(path) != Some(source));
        self
    }

    /// The layer as a tar file: sorted, of nobody's time, and owned by root.
    fn tar(&self) -> Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut made = BTreeSet::new();
        let folders = self.folders.iter().map(|(path, mode)| (path.as_str(), *mode));
        let above = self.files.keys().chain(self.links.keys()).map(|path| (parent(path), 0o755));
        for (path, mode) in folders.chain(above) {
            for folder in ancestors(path).into_iter().filter(|folder| !folder.is_empty()) {
                let mode = self.folders.get(&format!("/{folder}")).copied().unwrap_or(mode);
                if made.insert(folder.to_owned()) {
                    tar.append_data(&mut header(tar::EntryType::Directory, mode, 0), format!("{folder}/"), &[][..])
                        .doing(format!("/{folder}"))?;
                }
            }
        }
        for (path, source) in &self.files {
            let bytes = fs::read(source).doing(source.display())?;
            let executable = fs::metadata(source).doing(source.display())?.mode() & 0o111 != 0;
            let mode = if executable { 0o755 } else { 0o644 };
            let mut header = header(tar::EntryType::Regular, mode, bytes.len() as u64);
            tar.append_data(&mut header, relative(path), &bytes[..]).doing(path)?;
        }
        for (path, target) in &self.links {
            tar.append_link(&mut header(tar::EntryType::Symlink, 0o777, 0), relative(path), target).doing(path)?;
        }
        tar.into_inner().doing("a layer")
    }

    /// What decides about the bytes of the layer, without reading its files: a package that replaces a file changes its
    /// size or its time.
    fn describe(&self) -> Result<Value> {
        let mut files = Vec::new();
        for (path, source) in &self.files {
            let meta = fs::metadata(source).doing(source.display())?;
            files.push(json!([path, source, meta.len(), meta.mtime(), meta.mtime_nsec(), meta.mode()]));
        }
        Ok(json!([files, self.links, self.folders]))
    }
}

/// How an image is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// The program and the arguments that stay; a pod's `command` takes their place.
    pub entrypoint: Vec<String>,
    /// The arguments that a pod's `args` take the place of.
    pub cmd: Vec<String>,
    /// `user[:group]`, as numbers or names; root if empty.
    pub user: String,
    /// Environment variables, `NAME=value`.
    pub env: Vec<String>,
    /// Ports that it opens, such as `53/udp`. For people; it opens nothing.
    pub exposed: Vec<String>,
    /// The working folder; the root if empty.
    pub folder: String,
}

impl ImageConfig {
    fn json(&self, diff_ids: &[String]) -> Value {
        let list = |items: &[String]| if items.is_empty() { Value::Null } else { json!(items) };
        let ports: BTreeMap<&str, Value> = self.exposed.iter().map(|port| (port.as_str(), json!({}))).collect();
        json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "Entrypoint": list(&self.entrypoint),
                "Cmd": list(&self.cmd),
                "Env": list(&self.env),
                "User": self.user,
                "ExposedPorts": ports,
                "WorkingDir": self.folder,
            },
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        })
    }
}

/// Images that go into one archive.
#[derive(Clone, Default)]
pub struct ImageArchive {
    layers: Vec<Layer>,
    images: Vec<(String, Vec<usize>, ImageConfig)>,
}

impl ImageArchive {
    /// An archive without images.
    pub fn new() -> ImageArchive {
        ImageArchive::default()
    }

    /// Adds a layer for images to stand on; the number names it.
    pub fn layer(&mut self, layer: Layer) -> usize {
        self.layers.push(layer);
        self.layers.len() - 1
    }

    /// Adds an image of these layers, the lowest first. The name is whole, registry and tag included, as containerd
    /// keeps it: `docker.io/library/busybox:1.36`.
    pub fn image(&mut self, name: &str, layers: &[usize], config: ImageConfig) {
        self.images.push((name.to_owned(), layers.to_vec(), config));
    }

    /// A short hash of everything that decides about the archive's bytes: equal keys, equal archives.
    pub fn key(&self) -> Result<String> {
        let layers = self.layers.iter().map(Layer::describe).collect::<Result<Vec<_>>>()?;
        let images = self.images.iter().map(|(name, layers, config)| json!([name, layers, config.json(&[])]));
        let all = json!([FORMAT, layers, images.collect::<Vec<_>>()]).to_string();
        Ok(sha256(all.as_bytes())[..16].to_owned())
    }

    /// Writes the archive, at once: a reader finds the old file or the whole new one.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut blobs = Blobs::default();
        let mut layers = Vec::new();
        for layer in &self.layers {
            layers.push(blobs.add("application/vnd.oci.image.layer.v1.tar", layer.tar()?));
        }
        let mut manifests = Vec::new();
        for (name, used, config) in &self.images {
            let tag = name.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'));
            let tag = tag.ok_or_else(|| Error::new(format!("image {name:?}: the name needs a tag, such as `:1`")))?;
            let used: Vec<&Value> = used.iter().map(|number| &layers[*number]).collect();
            // Layers are not compressed, so the digest of a blob is that of what is in it.
            let diff_ids: Vec<_> =
                used.iter().filter_map(|layer| layer["digest"].as_str()).map(str::to_owned).collect();
            let config =
                blobs.add("application/vnd.oci.image.config.v1+json", config.json(&diff_ids).to_string().into());
            let manifest_type = "application/vnd.oci.image.manifest.v1+json";
            let manifest =
                json!({"schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": used}).to_string();
            let mut descriptor = blobs.add(manifest_type, manifest.into());
            descriptor["platform"] = json!({"architecture": architecture(), "os": "linux"});
            descriptor["annotations"] =
                json!({"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag});
            manifests.push(descriptor);
        }
        let index = json!({"schemaVersion": 2, "manifests": manifests}).to_string();

        let partial = path.with_extension(format!("partial-{}", std::process::id()));
        let written = File::create(&partial)
            .and_then(|file| {
                let mut tar = tar::Builder::new(file);
                let mut put = |name: &str, bytes: &[u8]| {
                    let mut header = header(tar::EntryType::Regular, 0o644, bytes.len() as u64);
                    tar.append_data(&mut header, name, bytes)
                };
                put("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
                put("index.json", index.as_bytes())?;
                for (digest, bytes) in &blobs.0 {
                    put(&format!("blobs/sha256/{digest}"), bytes)?;
                }
                tar.into_inner()?.flush()
            })
            .and_then(|()| fs::rename(&partial, path));
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written.doing(path.display())
    }
}

/// What an archive is made of, by digest: equal blobs are there once.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds a blob; what other documents say of it.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (digest, size) = (sha256(&bytes), bytes.len());
        let descriptor = json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size});
        self.0.insert(digest, bytes);
        descriptor
    }
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// `usr`, `usr/bin` of `/usr/bin`.
fn ancestors(path: &str) -> Vec<&str> {
    let path = relative(path);
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end]).collect()
}

/// The machine's CPU in the words of OCI, which are Go's.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// The absolute paths of the shared libraries and of the loader that a program needs; none for a static one.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let what = format!("the libraries of {}", program.display());
    let out = Command::new("ldd").arg(program).env("LC_ALL", "C").stdin(Stdio::null()).output().doing(&what)?;
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        return match text.contains("not a dynamic") || said.contains("not a dynamic") {
            true => Ok(Vec::new()),
            false => Err(Error::new(format!("{what}: ldd: {}", said.trim()))),
        };
    }
    libraries_in(&text).doing(what)
}

/// Reads what ldd prints: `name => path (address)`, `path (address)`, or `name (address)` of what has no file.
fn libraries_in(text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for line in text.lines() {
        if line.contains("=> not found") {
            return Err(Error::new(format!("a library is missing on this machine: {}", line.trim())));
        }
        found.extend(line.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_ldd_says() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so (0x3)\n";
        assert_eq!(libraries_in(text).unwrap(), ["/lib/libc.so.6", "/lib64/ld.so"]);
        let missing = libraries_in("\tlibx.so.1 => not found\n").unwrap_err().to_string();
        assert!(missing.contains("libx.so.1"), "{missing}");
    }

    /// Every file of a tar, by its name.
    fn entries(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (name, (entry.header().mode().unwrap(), bytes))
        });
        entries.collect()
    }

    #[test]
    fn every_digest_is_that_of_its_bytes_and_shared_layers_are_there_once() {
        let folder = std::env::temp_dir().join(format!("image-archive-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let source = folder.join("greeting");
        fs::write(&source, "hello").unwrap();
        let layer = Layer::new().file("/usr/share/greeting", &source).link("/g", "/usr/share/greeting");
        let mut archive = ImageArchive::new();
        let base = archive.layer(layer.clone().folder("/tmp", 0o1777));
        let top =
            archive.layer(Layer::new().file("/other", &source).file("/usr/share/greeting", &source).on_top_of(&layer));
        let config = ImageConfig { cmd: vec!["/g".into()], exposed: vec!["53/udp".into()], ..Default::default() };
        archive.image("example.org/a:1", &[base], config.clone());
        archive.image("example.org:5000/b:2", &[base, top], config);
        let key = archive.key().unwrap();
        let path = folder.join("images.tar");
        archive.write(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        archive.write(&path).unwrap();
        assert_eq!(bytes, fs::read(&path).unwrap(), "the same files give the same bytes");

        let all = entries(&bytes);
        for (name, (_, bytes)) in all.iter().filter(|(name, _)| name.starts_with("blobs/")) {
            assert_eq!(*name, format!("blobs/sha256/{}", sha256(bytes)));
        }
        let document = |digest: &Value| -> Value {
            let name = format!("blobs/{}", digest.as_str().unwrap().replace(':', "/"));
            serde_json::from_slice(&all[&name].1).unwrap()
        };
        let index: Value = serde_json::from_slice(&all["index.json"].1).unwrap();
        let manifests: Vec<_> = (0..2).map(|n| document(&index["manifests"][n]["digest"])).collect();
        assert_eq!(index["manifests"][1]["annotations"]["io.containerd.image.name"], "example.org:5000/b:2");
        assert_eq!(manifests[0]["layers"][0], manifests[1]["layers"][0]);
        let config = document(&manifests[1]["config"]["digest"]);
        assert_eq!(config["rootfs"]["diff_ids"][1], manifests[1]["layers"][1]["digest"]);
        assert_eq!(config["config"]["ExposedPorts"], json!({"53/udp": {}}));

        let layer = |n: usize| {
            let digest = manifests[1]["layers"][n]["digest"].as_str().unwrap().replace(':', "/");
            entries(&all[&format!("blobs/{digest}")].1)
        };
        assert_eq!(layer(0)["usr/share/greeting"], (0o644, b"hello".to_vec()));
        assert_eq!(layer(0)["tmp/"].0, 0o1777);
        assert_eq!(layer(1).keys().collect::<Vec<_>>(), ["other"], "what is below is not repeated");

        fs::write(&source, "changed").unwrap();
        assert_ne!(key, archive.key().unwrap(), "a changed file is another archive");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_name_without_a_tag_is_an_error() {
        let mut archive = ImageArchive::new();
        archive.image("example.org:5000/b", &[], ImageConfig::default());
        let error = archive.write(&std::env::temp_dir().join("never-written.tar")).unwrap_err().to_string();
        assert!(error.contains("example.org:5000/b") && error.contains("tag"), "{error}");
    }
}
