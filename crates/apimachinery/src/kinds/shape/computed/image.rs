//! Image references (`github.com/distribution/reference`), as far as the default pull policy depends on them.

/// Returns `Always` if the tag is `latest` or missing. A malformed reference has no tag.
pub(super) fn pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// Returns the effective tag; `None` for a digest or a malformed reference.
fn tag(image: &str) -> Option<&str> {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let path = name.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match name[path..].split_once(':') {
        Some((last, tag)) => (&name[..path + last.len()], Some(tag)),
        None => (name, None),
    };
    let nameless = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if nameless || !is_repository(name) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

/// True for a path in lower case, with an optional host in front.
fn is_repository(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => name,
    };
    path.split('/').all(is_component)
}

fn is_host(part: &str) -> bool {
    let (host, port) = part.rsplit_once(':').unwrap_or((part, "0"));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '[' | ']' | ':');
    let marked = part.contains(['.', ':']) || part == "localhost" || part.to_lowercase() != part;
    marked && host.chars().all(fits) && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// True for lower-case letters and digits, separated by a dot, one or two underscores, or dashes.
fn is_component(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(plain)
        && part.ends_with(plain)
        && part.split(plain).all(|between| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128
        && tag.starts_with(word)
        && tag.chars().all(|c| word(c) || matches!(c, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, sum)| {
        algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
            && sum.len() >= 32
            && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_pulled_always_only_at_their_latest() {
        let sum = "a".repeat(64);
        for image in [
            "nginx",
            "nginx:latest",
            "registry:5000/a/b",
            "example.com/a__b/c-d:latest",
            &format!("nginx:latest@sha256:{sum}"),
        ] {
            assert_eq!(pull_policy(image), "Always", "{image}");
        }
        for image in [
            "",
            "nginx:1.27",
            "Nginx",
            "a b",
            "nginx:",
            "registry:5000/a:1",
            "a/B",
            "a//b",
            &format!("nginx@sha256:{sum}"),
            "nginx:latest@sha256:1",
            &sum,
        ] {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image}");
        }
    }
}
