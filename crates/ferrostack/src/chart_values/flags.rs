//! Flags added to a program by [`Values`].
//!
//! In Go the last occurrence of a flag counts. The manifest has this occurrence alone, and so shows the effective
//! flags.

use anyhow::bail;
use clap::{Arg, ArgAction, Command};
use serde_json::Value;

use super::Values;

/// Name of the argument with the level of klog, after `--log`.
const VERBOSITY: &str = "verbosity";
const LOG: &str = "log";

/// Adds the flags of a path to a program of this suite with these arguments. A flag set before, by any of its names, is
/// replaced, unless the argument may be repeated.
///
/// # Errors
/// Flag with another value in `given`, the names and values on the command line.
pub(crate) fn add(
    container: &mut Value,
    program: &Command,
    values: &Values,
    path: &str,
    given: &[(&str, String)],
) -> anyhow::Result<()> {
    let more = listed(values, path);
    for (index, text) in more.iter().enumerate() {
        let Some(flag) = of(program, text) else {
            continue;
        };
        let next = more.get(index + 1).filter(|it| !it.starts_with('-'));
        let value = text.split_once('=').map(|it| it.1);
        let value = value.or(next.copied()).unwrap_or("true");
        let same = |(name, _): &&(&str, String)| of(program, name) == Some(flag);
        if let Some((name, other)) = given.iter().find(same)
            && other != value
        {
            bail!(
                "{path}: {name} is {value} there, and {other} on the command line: leave one of them out"
            );
        }
    }
    let key = |text: &str| {
        let flag = of(program, text)?;
        let is_list = matches!(flag.get_action(), ArgAction::Append);
        (!is_list).then(|| flag.get_id().to_string())
    };
    extend(container, &more, key);
    let is = |text: &&str, id: &str| of(program, text).is_some_and(|it| it.get_id() == id);
    let has = |id: &str| more.iter().any(|text| is(text, id));
    if has(VERBOSITY) && !has(LOG) {
        let args = container["args"].as_array_mut();
        let is_log = |it: &Value| it.as_str().is_some_and(|it| is(&it, LOG));
        args.into_iter().for_each(|it| it.retain(|it| !is_log(it)));
    }
    Ok(())
}

/// Adds the flags of a path to another program, of Go. Flags of the manifests with the same name are replaced.
pub(crate) fn add_to_go(container: &mut Value, values: &Values, path: &str) {
    let name = |text: &str| {
        let name = text.strip_prefix('-')?.trim_start_matches('-');
        name.split('=').next().map(str::to_owned)
    };
    extend(container, &listed(values, path), name);
}

fn listed<'a>(values: &'a Values, path: &str) -> Vec<&'a str> {
    let list = values.get(path).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Adds flags in place of flags with the same key; flags without a key are added.
fn extend(container: &mut Value, more: &[&str], key: impl Fn(&str) -> Option<String>) {
    let Some(args) = container["args"].as_array_mut() else {
        return;
    };
    let keys: Vec<String> = more.iter().filter_map(|it| key(it)).collect();
    let mut replaced_before = false;
    args.retain(|it| {
        let text = it.as_str().unwrap_or_default();
        if std::mem::take(&mut replaced_before) && !text.starts_with('-') {
            return false;
        }
        let replaced = key(text).is_some_and(|it| keys.contains(&it));
        replaced_before = replaced && !text.contains('=');
        !replaced
    });
    args.extend(more.iter().map(|it| Value::from(*it)));
}

/// [`Arg`] of a text such as `--name=value`, `--name`, `-v=4` or `-v4`.
fn of<'a>(program: &'a Command, text: &str) -> Option<&'a Arg> {
    let word = text.split('=').next().unwrap_or_default();
    let mut all = program.get_arguments();
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(name), _) => {
            let name = name.replace('_', "-");
            let aliases = |it: &Arg| {
                it.get_all_aliases()
                    .unwrap_or_default()
                    .contains(&name.as_str())
            };
            all.find(|it| it.get_long() == Some(name.as_str()) || aliases(it))
        }
        (None, Some(name)) => all.find(|it| it.get_short().is_some_and(|it| name.starts_with(it))),
        (None, None) => None,
    }
}
