use proptest::prelude::*;

use super::*;

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let pairs = pairs.iter().copied();
    Headers(
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    )
}

/// Decodes all frames of `bytes`, which arrive in pieces of `size`.
fn frames(bytes: &[u8], size: usize) -> Result<Vec<Frame>, Malformed> {
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    for piece in bytes.chunks(size) {
        buffer.extend_from_slice(piece);
        while let Some(frame) = decoder.next(&mut buffer)? {
            found.push(frame);
        }
        assert!(
            buffer.len() < HEAD + LONGEST_CONTROL + size,
            "what is kept is bounded"
        );
    }
    Ok(found)
}

/// The header blocks that client-go sends for the two streams of a connection to port 6443, compressed by another
/// implementation of zlib (Python's, with the dictionary).
const FOREIGN: [&[u8]; 2] = [
    &[
        0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0x25, 0x3a, 0x70, 0x3a, 0x2b, 0x29, 0x4a, 0x4d,
        0xcc, 0x85, 0x16, 0x25, 0xac, 0xa9, 0xa0, 0x80, 0x86, 0x14, 0xcb, 0x45, 0xe0, 0x1c, 0x60,
        0x66, 0x62, 0x62, 0x0c, 0xa4, 0x39, 0x8b, 0x20, 0xd1, 0x98, 0x09, 0x4a, 0xde, 0x8c, 0x06,
        0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
    ],
    &[
        0xc2, 0xaa, 0x19, 0x54, 0x0e, 0x25, 0x12, 0xd6, 0x0b, 0x00, 0x00, 0x00, 0xff, 0xff,
    ],
];

#[test]
fn headers_compressed_by_another_implementation_are_decoded() {
    let expected =
        |kind: &str| headers(&[("port", "6443"), ("requestid", "0"), ("streamtype", kind)]);
    let mut inflater = Inflater::default();
    for (block, kind) in FOREIGN.into_iter().zip(["error", "data"]) {
        assert_eq!(inflater.read(block).unwrap(), expected(kind));
    }
}

#[test]
fn headers_compressed_with_the_dictionary_are_decoded_at_any_position() {
    let mut encoder = Encoder::default();
    let error = headers(&[
        ("port", "6443"),
        ("requestid", "0"),
        ("streamtype", "error"),
    ]);
    let data = headers(&[("port", "6443"), ("requestid", "0"), ("streamtype", "data")]);
    let mut bytes = encoder.syn(1, true, &error).to_vec();
    // The checksum of the dictionary, by which decompressors identify it.
    assert_eq!(bytes[HEAD + 10] & 0x0f, 8, "zlib");
    assert_eq!(
        bytes[HEAD + 12..HEAD + 16],
        [0xe3, 0xc6, 0xa7, 0xc2],
        "the dictionary of SPDY/3"
    );
    bytes.extend(encoder.reply(2));
    bytes.extend(encoder.syn(3, false, &data));
    for size in [1, 7, 4096] {
        let found = frames(&bytes, size).unwrap();
        let syn = |stream, fin, headers: &Headers| Frame::Syn {
            stream,
            fin,
            headers: headers.clone(),
        };
        assert_eq!(
            found,
            [syn(1, true, &error), Frame::Other, syn(3, false, &data)]
        );
    }
}

#[test]
fn long_data_is_decoded_in_pieces_and_the_last_one_ends_the_stream() {
    let long = vec![7; 3 * PIECE + 5];
    let found = frames(&data(9, true, &long), 2 * PIECE).unwrap();
    let mut got = Vec::new();
    let mut ends = Vec::new();
    for frame in found {
        let Frame::Data { stream, fin, bytes } = frame else {
            panic!("{frame:?}")
        };
        assert!(stream == 9 && bytes.len() <= PIECE);
        got.extend_from_slice(&bytes);
        ends.push(fin);
    }
    assert_eq!(got, long);
    assert_eq!(ends.pop(), Some(true));
    assert!(!ends.contains(&true));
    let empty = frames(&data(9, true, b""), 3).unwrap();
    let end = Frame::Data {
        stream: 9,
        fin: true,
        bytes: Bytes::new(),
    };
    assert_eq!(empty, [end]);
}

#[test]
fn resets_pings_and_go_away_are_decoded() {
    let mut bytes = reset(5, Status::Cancel).to_vec();
    bytes.extend(ping(11));
    bytes.extend(go_away(0, false));
    let expected = [
        Frame::Reset { stream: 5 },
        Frame::Ping { id: 11 },
        Frame::GoAway,
    ];
    assert_eq!(frames(&bytes, 5).unwrap(), expected);
}

#[test]
fn bytes_that_are_not_spdy_are_rejected_at_once() {
    let longest = [0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff];
    assert_eq!(frames(&longest, 8), Err(Malformed::Length(0x00ff_ffff)));
    let version = [0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
    assert_eq!(frames(&version, 12), Err(Malformed::Version(2)));
    assert_eq!(frames(&[0; 8], 8), Err(Malformed::Zero));
    let cut = [0x80, 3, 0, 6, 0, 0, 0, 2, 0, 0];
    assert_eq!(frames(&cut, 10), Err(Malformed::Length(2)));
    assert_eq!(
        frames(&control(77, b""), 8),
        Err(Malformed::Type(77)),
        "spdystream ends the connection as well"
    );
}

#[test]
fn a_compression_bomb_is_not_decompressed() {
    let bomb = headers(&[("port", &"0".repeat(1 << 20))]);
    let frame = Encoder::default().syn(1, false, &bomb);
    assert!(frame.len() < 8192);
    assert_eq!(frames(&frame, 8192), Err(Malformed::Headers("too long")));
}

proptest! {
    #[test]
    fn any_bytes_decode_to_frames_or_an_error_however_they_are_split(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        size in 1usize..64,
    ) {
        prop_assert_eq!(frames(&bytes, size).is_ok(), frames(&bytes, 600).is_ok());
    }

    /// Random bytes are hardly ever control frames, so the head is valid and the body is random.
    #[test]
    fn decoding_any_control_frame_never_panics(
        kind in 0u16..12,
        body in proptest::collection::vec(any::<u8>(), 0..200),
        zlib in any::<bool>(),
    ) {
        let mut whole = if zlib { vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2] } else { vec![] };
        whole.extend(body);
        let bytes = control(kind, &whole);
        prop_assert_eq!(frames(&bytes, 1), frames(&bytes, 4096));
    }

    #[test]
    fn headers_survive_encoding(
        blocks in proptest::collection::vec(
            proptest::collection::btree_map("[a-z]{1,12}", "[ -~]{0,40}", 0..6), 1..6),
    ) {
        let mut encoder = Encoder::default();
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (n, block) in blocks.into_iter().enumerate() {
            let (stream, headers) = (2 * n as u32 + 1, Headers(block));
            bytes.extend(encoder.syn(stream, false, &headers));
            expected.push(Frame::Syn { stream, fin: false, headers });
        }
        prop_assert_eq!(frames(&bytes, 13).unwrap(), expected);
    }
}
