//! Subset of regular expressions used by clients in filters of server names: anchors, `.`, `.*` and escapes.

enum Token {
    Literal(char),
    One,
    Many,
}

/// True if `text` matches, anywhere unless anchored, ignoring case as Nova's database does.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let start = pattern.starts_with('^');
    let end = pattern.ends_with('$') && !pattern.ends_with("\\$");
    let body = pattern.strip_prefix('^').unwrap_or(pattern);
    let body = if end {
        body.strip_suffix('$').unwrap_or(body)
    } else {
        body
    };
    let mut tokens = tokens(body);
    if !start {
        tokens.insert(0, Token::Many);
    }
    if !end {
        tokens.push(Token::Many);
    }
    let text: Vec<char> = text.to_lowercase().chars().collect();
    fits(&tokens, &text)
}

fn tokens(body: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let lowered = body.to_lowercase();
    let mut chars = lowered.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().map(Token::Literal)),
            '.' if chars.peek() == Some(&'*') => {
                chars.next();
                out.push(Token::Many);
            }
            '.' => out.push(Token::One),
            other => out.push(Token::Literal(other)),
        }
    }
    out
}

/// Matches with two pointers: on a mismatch, the last `Many` takes one more character.
fn fits(tokens: &[Token], text: &[char]) -> bool {
    let (mut t, mut c) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while c < text.len() {
        let step = match tokens.get(t) {
            Some(Token::Many) => {
                retry = Some((t, c));
                t += 1;
                continue;
            }
            Some(Token::One) => true,
            Some(Token::Literal(wanted)) => *wanted == text[c],
            None => false,
        };
        if step {
            t += 1;
            c += 1;
        } else if let Some((many, taken)) = retry {
            retry = Some((many, taken + 1));
            t = many + 1;
            c = taken + 1;
        } else {
            return false;
        }
    }
    tokens[t..].iter().all(|token| matches!(token, Token::Many))
}
