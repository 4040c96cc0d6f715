//! Streaming counter of the objects in the arrays of a JSON text.
//!
//! Three bytes, `{},`, become a Node of a kilobyte: a limit on bytes alone does not limit memory.

/// Counter of the objects and arrays that are elements of arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// Stack of open objects and arrays, one bit each: the innermost in the lowest bit, set for an array. The parser
    /// has the same limit of 128.
    open: u128,
    in_text: bool,
    escaped: bool,
    count: usize,
}

impl Entries {
    /// Reads the next piece. Returns the number of entries until now or, with `by_line`, the largest number in a line
    /// since `piece` began.
    pub(super) fn read(&mut self, piece: &[u8], by_line: bool) -> usize {
        let mut most = self.count;
        for byte in piece {
            if by_line && *byte == b'\n' {
                *self = Self::default();
                continue;
            }
            self.next(*byte);
            most = most.max(self.count);
        }
        most
    }

    fn next(&mut self, byte: u8) {
        match (self.in_text, byte) {
            (true, _) if self.escaped => self.escaped = false,
            (true, b'\\') => self.escaped = true,
            (_, b'"') => self.in_text = !self.in_text,
            (true, _) => {}
            (false, b'{' | b'[') => {
                self.count += usize::from(self.open & 1 == 1);
                self.open = self.open << 1 | u128::from(byte == b'[');
            }
            (false, b'}' | b']') => self.open >>= 1,
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        Entries::default().read(text.as_bytes(), false)
    }

    #[test]
    fn elements_of_arrays_are_counted_and_nothing_in_texts() {
        assert_eq!(count(r#"{"items":[{},{"a":{"b":{}}},[]],"c":[1,"x"]}"#), 3);
        assert_eq!(count(r#"{"a":"[{},{}]","b":"\"[{","c":"\\","d":[{}]}"#), 1);
        assert_eq!(count("[[{},{}],[{}]]"), 5);
        assert_eq!(count("nonsense ]}]} [{"), 1);
    }

    #[test]
    fn pieces_may_end_anywhere_and_lines_are_counted_apart() {
        let text = "{\"a\":[{},{\"\\\"[{\":1}]}\n{\"a\":[{}]}\n";
        let mut entries = Entries::default();
        let most = text.bytes().map(|byte| entries.read(&[byte], true)).max();
        assert_eq!(most, Some(2));
        assert_eq!(entries, Entries::default());
    }
}
