//! Header blocks: name-value pairs in one zlib stream for each direction of a connection, with a preset dictionary
//! (SPDY Protocol Draft 3.1, 2.6.10).

use std::collections::BTreeMap;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::Malformed;

/// Dictionary of the draft.
const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");
/// Maximum decompressed length of a block in bytes. Blocks of clients have about 60 bytes.
const LONGEST: usize = 64 << 10;

/// Headers of a stream by lower-case name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Headers(pub(in super::super) BTreeMap<String, String>);

impl Headers {
    /// Value of a header, or the first of several; empty if the header is missing.
    pub(in super::super) fn get(&self, name: &str) -> &str {
        let value = self.0.get(name).map_or("", String::as_str);
        value.split('\0').next().unwrap_or_default()
    }
}

/// Decompresses consecutive blocks.
#[derive(Debug)]
pub(super) struct Inflater(Decompress);

impl Default for Inflater {
    fn default() -> Self {
        Self(Decompress::new(true))
    }
}

impl Inflater {
    pub(super) fn read(&mut self, mut block: &[u8]) -> Result<Headers, Malformed> {
        let mut plain = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let (read, written) = (self.0.total_in(), self.0.total_out());
            let mut went_on = false;
            match self.0.decompress(block, &mut chunk, FlushDecompress::Sync) {
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    let known = self.0.set_dictionary(DICTIONARY);
                    known.map_err(|_| Malformed::Headers("another dictionary"))?;
                    went_on = true;
                }
                Err(_) => return Err(Malformed::Headers("not zlib")),
            }
            let read = (self.0.total_in() - read) as usize;
            let written = (self.0.total_out() - written) as usize;
            block = block.get(read..).unwrap_or_default();
            plain.extend_from_slice(chunk.get(..written).unwrap_or_default());
            if plain.len() > LONGEST {
                return Err(Malformed::Headers("too long"));
            }
            if block.is_empty() && written < chunk.len() {
                return parse(&plain);
            }
            if !went_on && read == 0 && written == 0 {
                return Err(Malformed::Headers("bytes after the end"));
            }
        }
    }
}

/// Pairs of a block.
fn parse(mut plain: &[u8]) -> Result<Headers, Malformed> {
    let mut headers = Headers::default();
    let count = number(&mut plain)?;
    for _ in 0..count {
        let name = text(&mut plain)?;
        let value = text(&mut plain)?;
        if headers.0.insert(name.to_lowercase(), value).is_some() {
            return Err(Malformed::Headers("a name twice"));
        }
    }
    Ok(headers)
}

fn number(plain: &mut &[u8]) -> Result<u32, Malformed> {
    let (number, rest) = plain
        .split_first_chunk::<4>()
        .ok_or(Malformed::Headers("cut off"))?;
    *plain = rest;
    Ok(u32::from_be_bytes(*number))
}

fn text(plain: &mut &[u8]) -> Result<String, Malformed> {
    let length = number(plain)? as usize;
    let (text, rest) = plain
        .split_at_checked(length)
        .ok_or(Malformed::Headers("cut off"))?;
    *plain = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Compresses consecutive blocks.
#[derive(Debug)]
pub(super) struct Deflater(Compress);

impl Default for Deflater {
    fn default() -> Self {
        let mut compress = Compress::new(Compression::default(), true);
        // Setting the dictionary fails only after the stream has begun. Without it, blocks are longer and still valid.
        let _ = compress.set_dictionary(DICTIONARY);
        Self(compress)
    }
}

impl Deflater {
    pub(super) fn write(&mut self, headers: &Headers) -> Vec<u8> {
        let mut plain = (headers.0.len() as u32).to_be_bytes().to_vec();
        for text in headers.0.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend((text.len() as u32).to_be_bytes());
            plain.extend(text.as_bytes());
        }
        // Room for incompressible bytes and the end of a flush.
        let mut block = Vec::with_capacity(plain.len() + 64);
        let before = self.0.total_in();
        loop {
            let read = (self.0.total_in() - before) as usize;
            let rest = plain.get(read..).unwrap_or_default();
            let free = block.capacity() - block.len();
            let done = self.0.compress_vec(rest, &mut block, FlushCompress::Sync);
            let full = block.capacity() == block.len();
            if done.is_err() || !full || free == 0 {
                return block;
            }
            block.reserve(64);
        }
    }
}
