//! Texts for crates whose sources lack a complete one.

use anyhow::Context;

/// Apache License 2.0; the text names no author.
const APACHE: &str = include_str!("../../../LICENSE");

/// From the repository of cel-rust.
const CEL: &str = "\
Copyright (c) 2022 Tom Forbes and Contributors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the \"Software\"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE
OR OTHER DEALINGS IN THE SOFTWARE.
";

/// Crates, with the origin of the text, and the text.
pub(super) const TEXTS: [(&str, &str, &str); 7] = [
    (
        "better_any",
        "the text of Apache-2.0; in its archive both files are links that lead nowhere",
        APACHE,
    ),
    (
        "cel",
        "the file LICENSE of its repository, which its archive lacks",
        CEL,
    ),
    (
        "granit-parser",
        "the text of Apache-2.0; its file LICENSE refers to files that its archive lacks",
        APACHE,
    ),
    ("kube", KUBE, APACHE),
    ("kube-client", KUBE, APACHE),
    ("kube-core", KUBE, APACHE),
    ("kube-runtime", KUBE, APACHE),
];
const KUBE: &str = "the text of Apache-2.0; its archive has no file with it";

/// Texts for a crate, with their origin.
pub(super) fn of(name: &str) -> impl Iterator<Item = (String, String)> {
    let texts = TEXTS.iter().filter(move |(of, ..)| *of == name);
    texts.map(|(_, from, text)| ((*from).to_owned(), (*text).to_owned()))
}

/// Crate with SQLite, and the header with its notice and version.
pub(crate) const SQLITE: (&str, &str) = ("libsqlite3-sys", "sqlite3/sqlite3.h");

/// Blessing in place of a licence in SQLite's header.
pub(super) fn blessing(header: &str) -> anyhow::Result<String> {
    let lines = header.lines();
    let notice: Vec<&str> = lines
        .skip_while(|line| !line.contains("disclaims copyright"))
        .take_while(|line| !line.starts_with("*****"))
        .map(|line| line.trim_start_matches('*').trim_end())
        .collect();
    (!notice.is_empty())
        .then(|| format!("SQLite is in the public domain.\n\n{}\n", notice.join("\n")))
        .context("the header of SQLite has no notice")
}
