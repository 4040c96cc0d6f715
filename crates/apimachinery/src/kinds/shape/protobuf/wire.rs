//! Wire format of protobuf: numbered fields, one after the other.

/// Writer of the fields of a message.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    /// Eight bytes.
    pub(crate) fn fixed(&mut self, field: u64, bits: u64) {
        self.varint(field << 3 | 1);
        self.bytes.extend_from_slice(&bits.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Seven bits in each byte, the lowest first.
    fn varint(&mut self, mut number: u64) {
        loop {
            let byte = (number & 0x7f) as u8;
            number >>= 7;
            if number == 0 {
                return self.bytes.push(byte);
            }
            self.bytes.push(byte | 0x80);
        }
    }
}

/// Value of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Number(u64),
    /// Eight bytes.
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Reader of the fields of a message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

const CUT: &str = "unexpected EOF";

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the next field; `None` at the end. Fixed 32-bit fields are skipped, since no type has them.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, String> {
        while !self.rest.is_empty() {
            let tag = self.number()?;
            let wire = match tag & 7 {
                0 => Wire::Number(self.number()?),
                1 => {
                    let bytes = self.take(8)?.try_into().map_err(|_| CUT)?;
                    Wire::Fixed(u64::from_le_bytes(bytes))
                }
                2 => {
                    let length = usize::try_from(self.number()?).map_err(|_| CUT)?;
                    Wire::Bytes(self.take(length)?)
                }
                5 => {
                    self.take(4)?;
                    continue;
                }
                other => return Err(format!("illegal wire type {other}")),
            };
            return Ok(Some((tag >> 3, wire)));
        }
        Ok(None)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Seven bits in each byte, the lowest first.
    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("integer overflow".to_owned())
    }
}
