// Two texts to whether a server could tell them apart.
//
// `==` of String is canonical equivalence: U+00E9 equals U+0065 U+0301. On the wire these are two IDs, two variables,
// two header values. Pure. Called on any thread.

extension String {
    /// Whether both are the same bytes of UTF-8.
    func hasSameBytes(as other: String) -> Bool {
        // What differs for `==` differs in its bytes, and is told apart faster.
        self == other && utf8.elementsEqual(other.utf8)
    }
}

extension Optional where Wrapped == String {
    /// Whether both are nil, or the same bytes of UTF-8.
    func hasSameBytes(as other: String?) -> Bool {
        switch (self, other) {
        case (nil, nil): true
        case (let left?, let right?): left.hasSameBytes(as: right)
        case (nil, _?), (_?, nil): false
        }
    }
}
