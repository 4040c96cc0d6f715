//! Paths in the tokens of a macro or an attribute: each sequence that looks like a path counts.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::Written;

/// Owner of the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokensOf {
    Macro,
    /// Attribute: strings are paths, too, such as in `default = "crate::seconds"`.
    Attribute,
}

/// Paths in the tokens, each with its line.
pub(super) fn paths(tokens: TokenStream, of: TokensOf) -> Vec<(usize, Written)> {
    let mut found = Vec::new();
    read(tokens, of, None, &mut found);
    found
}

/// Reads tokens; with `prefix`, tokens in braces behind it, as of a `use` in a macro.
fn read(
    tokens: TokenStream,
    of: TokensOf,
    prefix: Option<&Written>,
    found: &mut Vec<(usize, Written)>,
) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(first) if !is_member(&tokens, at) => {
                let (path, end) = path_at(&tokens, at, prefix);
                at = end;
                if let Some(inner) = braces_at(&tokens, end) {
                    read(inner, of, Some(&path), found);
                    at += 3;
                } else if !is_keyword(&path) {
                    found.push((first.span().start().line, path));
                }
                continue;
            }
            TokenTree::Group(group) => read(group.stream(), of, None, found),
            TokenTree::Literal(literal) if of == TokensOf::Attribute => {
                let path = quoted(&literal.to_string());
                found.extend(path.map(|path| (literal.span().start().line, path)));
            }
            _ => {}
        }
        at += 1;
    }
}

/// True if the token is the name of a field or method.
fn is_member(tokens: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    matches!(before, Some(TokenTree::Punct(it)) if it.as_char() == '.')
}

/// Path that begins at a token, and the index of the token after the path.
fn path_at(tokens: &[TokenTree], start: usize, prefix: Option<&Written>) -> (Written, usize) {
    let mut path = prefix.cloned().unwrap_or(Written {
        is_external: ends_with_colons(&tokens[..start]),
        segments: Vec::new(),
    });
    let mut at = start;
    while let Some(TokenTree::Ident(segment)) = tokens.get(at) {
        path.segments.push(segment.to_string());
        at += 1;
        let is_last = !matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)));
        if is_last || !has_colons(tokens, at) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// Tokens in the braces of `::{…}`.
fn braces_at(tokens: &[TokenTree], at: usize) -> Option<TokenStream> {
    match tokens.get(at + 2)? {
        TokenTree::Group(group)
            if group.delimiter() == Delimiter::Brace && has_colons(tokens, at) =>
        {
            Some(group.stream())
        }
        _ => None,
    }
}

/// True if the tokens from `at` are `::`.
fn has_colons(tokens: &[TokenTree], at: usize) -> bool {
    tokens.get(at..at + 2).is_some_and(ends_with_colons)
}

fn ends_with_colons(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ':');
    match tokens {
        [.., TokenTree::Punct(first), second] => {
            first.as_char() == ':' && first.spacing() == Spacing::Joint && is_colon(second)
        }
        _ => false,
    }
}

/// True for a keyword alone, such as in `pub(crate)`.
fn is_keyword(path: &Written) -> bool {
    matches!(path.segments.as_slice(), [word] if matches!(word.as_str(), "crate" | "self" | "super"))
}

/// Path in a string literal.
fn quoted(literal: &str) -> Option<Written> {
    let text = literal.trim_matches('"');
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    if !text.contains("::") || !text.chars().all(is_part) {
        return None;
    }
    let path: syn::Path = syn::parse_str(text).ok()?;
    Some(Written::from(&path))
}
