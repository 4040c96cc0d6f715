//! The lexer of label selectors.

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    Open,
}

/// Source of tokens, with one token of look-ahead.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    rest: &'a str,
    peeked: Option<(Token, String)>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            peeked: None,
        }
    }

    /// Returns the next token where an operator is expected.
    pub(super) fn next(&mut self) -> (Token, String) {
        match self.peeked.take() {
            Some(token) => token,
            None => self.scan(),
        }
    }

    /// Returns the next token where a key or value is expected: there, `in` and `notin` are identifiers.
    pub(super) fn next_value(&mut self) -> (Token, String) {
        let (token, literal) = self.next();
        (as_value(token), literal)
    }

    /// Returns the token of the next call of [`Self::next_value`].
    pub(super) fn peek_value(&mut self) -> (Token, String) {
        if self.peeked.is_none() {
            self.peeked = Some(self.scan());
        }
        let (token, literal) = self.peeked.clone().unwrap_or((Token::End, String::new()));
        (as_value(token), literal)
    }

    fn scan(&mut self) -> (Token, String) {
        self.rest = self.rest.trim_start_matches(is_space);
        let Some(first) = self.rest.chars().next() else {
            return (Token::End, String::new());
        };
        // Go's lexer uses NUL as the end mark, so a NUL ends the selector.
        if first == '\0' {
            self.rest = "";
            return (Token::End, String::new());
        }
        if is_special(first) {
            self.scan_symbol()
        } else {
            self.scan_word()
        }
    }

    fn scan_word(&mut self) -> (Token, String) {
        let end = self
            .rest
            .find(|c| is_special(c) || is_space(c) || c == '\0');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        let token = match word {
            "in" => Token::In,
            "notin" => Token::NotIn,
            _ => Token::Identifier,
        };
        (token, word.to_owned())
    }

    /// Scans the longest known symbol; the characters after the symbol belong to the next token.
    fn scan_symbol(&mut self) -> (Token, String) {
        let run = self
            .rest
            .find(|c| !is_special(c))
            .unwrap_or(self.rest.len());
        for length in [2, 1] {
            if let Some(symbol) = self.rest.get(..length.min(run))
                && let Some(token) = symbol_token(symbol)
            {
                self.rest = &self.rest[symbol.len()..];
                return (token, symbol.to_owned());
            }
        }
        let symbol = &self.rest[..run];
        self.rest = &self.rest[run..];
        (
            Token::Error,
            format!("error expected: keyword found '{symbol}'"),
        )
    }
}

fn as_value(token: Token) -> Token {
    match token {
        Token::In | Token::NotIn => Token::Identifier,
        token => token,
    }
}

fn symbol_token(symbol: &str) -> Option<Token> {
    Some(match symbol {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::GreaterThan,
        "<" => Token::LessThan,
        "!=" => Token::NotEquals,
        "(" => Token::Open,
        _ => return None,
    })
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
