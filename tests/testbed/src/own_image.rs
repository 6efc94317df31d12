//! Namesake's own image as `deploy/image/Dockerfile` says it, without a container engine: its cargo command builds the
//! program, its last stage says what goes into the image and how that is run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Doing, Error, Result};
use crate::image_archive::{ImageArchive, ImageConfig, Layer};

/// The name of the image in the clusters. Its tag is not `latest`, so kubelets don't look for a newer one.
pub const NAMESAKE: &str = "localhost/namesake:built";

/// Namesake's image, and the program in it, which runs on this machine as well.
pub struct OwnImage {
    archive: ImageArchive,
    program: PathBuf,
}

impl OwnImage {
    /// Builds the program by the Dockerfile's command, in release mode: five minutes the first time, a moment when it
    /// is up to date. cargo's messages go to standard error.
    pub fn build() -> Result<OwnImage> {
        let root = repository();
        let path = root.join("deploy/image/Dockerfile");
        let text = std::fs::read_to_string(&path).doing(path.display())?;
        let recipe = recipe(&text).doing(path.display())?;
        let program = cargo(root, &recipe.build)?;
        let mut layer = Layer::new();
        for (from, to) in &recipe.copies {
            // What the build stage has made, or a file that its image and this machine have in the same place.
            layer = layer.file(to, if *from == recipe.built { program.clone() } else { machine_file(from)? });
        }
        let mut archive = ImageArchive::new();
        let layer = archive.layer(layer);
        archive.image(NAMESAKE, &[layer], recipe.config);
        Ok(OwnImage { archive, program })
    }

    /// The program, for commands such as `namesake join`.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Writes the image as an archive that [`Cluster::import_image`](crate::Cluster::import_image) takes.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.archive.write(path)
    }
}

/// The top of the repository.
pub(crate) fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

fn machine_file(path: &str) -> Result<PathBuf> {
    let file = PathBuf::from(path);
    match file.is_file() {
        true => Ok(file),
        false => Err(Error::new(format!(
            "there is no {path} on this machine, which the Dockerfile copies into the image (for certificates: apt-get \
             install ca-certificates)"
        ))),
    }
}

/// Runs the build command; the path of the program that cargo made.
fn cargo(root: &Path, command: &str) -> Result<PathBuf> {
    let what = format!("building Namesake's image: {command}");
    let mut shell = Command::new("sh");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_a_build(&name.to_string_lossy())) {
        shell.env_remove(name);
    }
    let out = shell
        .arg("-ec")
        .arg(format!("{command} --message-format=json-render-diagnostics"))
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .doing(&what)?;
    if !out.status.success() {
        return Err(Error::new(format!("{what}: {}; its messages are above", out.status)));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let made = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = made.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    program.ok_or_else(|| Error::new(format!("{what}: cargo names no program")))
}

/// Whether a variable is one that cargo sets for the programs that it builds or runs, such as tests. Build scripts that
/// look at some of them would run again each time another package's test builds the image, and minutes would go by.
fn is_of_a_build(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CFG_", "DEP_"];
    const NAMES: [&str; 6] = [
        "CARGO",
        "CARGO_CRATE_NAME",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_TARGET_TMPDIR",
        "OUT_DIR",
        // It would win over the command's own RUSTFLAGS.
        "CARGO_ENCODED_RUSTFLAGS",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

/// What the Dockerfile says.
#[derive(Debug, PartialEq)]
struct Recipe {
    /// The shell command that builds the program.
    build: String,
    /// Where the build stage puts the program.
    built: String,
    /// From the build stage into the image.
    copies: Vec<(String, String)>,
    config: ImageConfig,
}

/// Reads the Dockerfile, as far as ours goes: two stages, the second of which begins with nothing. An instruction that
/// is not known is an error, for an image that differs from the file's proves nothing.
fn recipe(text: &str) -> Result<Recipe> {
    let mut copies = Vec::new();
    let mut config = ImageConfig::default();
    let (mut build, mut built, mut stage) = (String::new(), String::new(), 0);
    for (number, line) in instructions(text) {
        let unknown = || Err(Error::new(format!("line {number}: the test bed does not know how to do this: {line}")));
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let rest = rest.trim();
        match (stage, word) {
            (0, "ARG") => {}
            (0, "FROM") if rest.ends_with(" AS build") => stage = 1,
            (1, "WORKDIR") => {}
            (1, "COPY") if rest == ". ." => {}
            (1, "RUN") => (build, built) = build_command(rest).doing(format!("line {number}"))?,
            (1, "FROM") if rest == "scratch" => stage = 2,
            (2, "COPY") => match rest.split_whitespace().collect::<Vec<_>>()[..] {
                ["--from=build", from, to] if !to.ends_with('/') => copies.push((from.to_owned(), to.to_owned())),
                _ => return unknown(),
            },
            (2, "USER") => config.user = rest.to_owned(),
            (2, "EXPOSE") => config.exposed = rest.split_whitespace().map(str::to_owned).collect(),
            (2, "ENTRYPOINT" | "CMD") => {
                let words = serde_json::from_str(rest).doing(format!("line {number}: {word} is no JSON list"))?;
                *(if word == "CMD" { &mut config.cmd } else { &mut config.entrypoint }) = words;
            }
            _ => return unknown(),
        }
    }
    if stage != 2 || build.is_empty() || !copies.iter().any(|(from, _)| *from == built) {
        return Err(Error::new("expected a stage `build` that builds the program, and `FROM scratch` that copies it"));
    }
    Ok(Recipe { build, built, copies, config })
}

/// The instructions with their line numbers: without comments, and with continued lines put together.
fn instructions(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part.trim_end(), true));
        match all.last_mut() {
            Some((_, before)) if goes_on => before.push_str(&format!(" {part}")),
            _ => all.push((number, part.to_owned())),
        }
        goes_on = more;
    }
    all
}

/// Of `--mount=… set && cargo build … && cp MADE PLACE`: what goes before `cp`, and PLACE.
fn build_command(run: &str) -> Result<(String, String)> {
    let words: Vec<_> = run.split_whitespace().skip_while(|word| word.starts_with("--mount=")).collect();
    let command = words.join(" ");
    let parts = command.rsplit_once(" && ").filter(|(build, _)| build.contains("cargo build"));
    let (build, copy) = parts.ok_or_else(|| Error::new("RUN is not `… cargo build … && cp MADE PLACE`"))?;
    match copy.split_whitespace().collect::<Vec<_>>()[..] {
        ["cp", _, place] => Ok((build.to_owned(), place.to_owned())),
        _ => Err(Error::new(format!("RUN does not end with `cp MADE PLACE` but with `{copy}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dockerfile() -> String {
        std::fs::read_to_string(repository().join("deploy/image/Dockerfile")).unwrap()
    }

    #[test]
    fn the_repositorys_file_is_understood_whole() {
        let recipe = recipe(&dockerfile()).unwrap();
        assert!(recipe.build.starts_with("target="), "{}", recipe.build);
        assert!(recipe.build.contains("RUSTFLAGS=\"-C target-feature=+crt-static\" cargo build --release --locked"));
        assert!(recipe.build.ends_with("--target \"$target\""), "{}", recipe.build);
        assert!(recipe.copies.contains(&("/namesake".into(), "/namesake".into())));
        assert_eq!(recipe.config.entrypoint, ["/namesake"]);
        assert_eq!(recipe.config.cmd[0], "dns");
        assert_eq!(recipe.config.user, "65532:65532");
        assert!(recipe.config.exposed.contains(&"1053/udp".to_owned()), "{recipe:?}");
    }

    #[test]
    fn the_build_does_not_see_which_test_asks_for_it() {
        assert!(std::env::vars().any(|(name, _)| is_of_a_build(&name)), "cargo tells a test about itself");
        for kept in ["PATH", "HOME", "CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_NET_OFFLINE"] {
            assert!(!is_of_a_build(kept), "{kept}");
        }
    }

    #[test]
    fn what_is_not_known_is_an_error_with_its_line() {
        let text = dockerfile();
        let lines = text.lines().count();
        for more in ["RUN true", "COPY --from=build /a /b/", "COPY x /y", "VOLUME /data", "FROM scratch"] {
            let error = recipe(&format!("{text}{more}\n")).unwrap_err().to_string();
            assert!(error.contains(&format!("line {}:", lines + 1)) && error.contains(more), "{error}");
        }
        assert!(recipe(&format!("{text}CMD namesake dns\n")).unwrap_err().to_string().contains("CMD is no JSON list"));
        assert!(recipe("FROM scratch\n").is_err());
    }
}
