import array
import itertools
import zlib

from msgspec import msgpack


def extension(kind, data):
    if kind == 2:
        return int.from_bytes(data, "little", signed=True)
    if kind in (3, 6):
        return bytes(data).decode("utf-8", "surrogatepass")
    inner = unpack(data)
    return tuple(inner) if kind == 1 else dict(inner) if kind == 4 else {"class": inner[0], **inner[1]}


def unpack(data):
    return msgpack.decode(data, ext_hook=extension)


def blocks(file):
    start = file.read(12)
    if start[:10] != b"\x89tokscp\n\x01\x00":
        raise ValueError("no recorded run of version 1")
    checksum = zlib.crc32(start)
    while head := file.read(13):
        kept = file.read(int.from_bytes(head[1:5], "little"))
        checksum = zlib.crc32(kept, zlib.crc32(head[:9], checksum))
        if checksum != int.from_bytes(head[9:], "little"):
            raise ValueError("the file is damaged")
        yield head[:1], unpack(zlib.decompress(kept))


def numbers(code, data):
    """Numbers in planes, on a little-endian machine."""
    count = len(data) // array.array(code).itemsize
    return array.array(code, b"".join(data[place::count] for place in range(count))).tolist()


class Reader:
    def events(self, path):
        self.texts = []
        with open(path, "rb") as file:
            for kind, content in blocks(file):
                if kind == b"H":
                    self.schema = content["schema"]
                elif kind == b"E":
                    yield from self.block(*content)

    def block(self, count, texts, doubles, order, tables):
        self.texts += texts
        self.doubles = numbers("d", doubles)
        order, names = self.column("int", order, count), self.schema["events"]
        rows = {n: iter(self.column(["record", names[n]], column, order.count(n))) for n, column in tables}
        return [next(rows[number]) for number in order]

    def column(self, kind, column, count):
        """`count` values of a kind."""
        match column:
            case None:
                return []
            case ["same", value]:
                return [value] * count
            case ["each", values]:
                return values
            case ["of", values, places]:
                return [values[place] for place in self.column("int", places, count)]
            case ["ints", base, width, data]:
                return [base + value for value in numbers({1: "B", 2: "H", 4: "I", 8: "Q"}[width], data)]
            case ["steps", first, *differences]:
                return list(itertools.accumulate(self.column("int", ["ints", *differences], count - 1), initial=first))
            case ["bools", data]:
                return [byte == 1 for byte in data]
            case ["floats", data]:
                return numbers("f", data)
            case ["doubles", flags, data, steps]:
                is_short = self.column("bool", flags, count)
                places = itertools.accumulate(self.column("int", steps, is_short.count(False)))
                short = iter(numbers("f", data))
                return [next(short) if yes else self.doubles[next(places)] for yes in is_short]
            case ["texts", places]:
                return [self.texts[place] for place in self.column("int", places, count)]
            case ["some", flags, values]:
                there = self.column("bool", flags, count)
                found = iter(self.column(kind[1], values, sum(there)))
                return [next(found) if yes else None for yes in there]
            case ["many", lengths, items]:
                sizes = self.column("int", lengths, count)
                found = iter(self.column(kind[1], items, sum(sizes)))
                return [tuple(itertools.islice(found, size)) for size in sizes]
            case ["parts", *parts] if kind[0] == "tuple":
                return list(zip(*map(self.column, kind[1:], parts, itertools.repeat(count)), strict=True))
            case ["parts", *parts]:
                names, kinds = zip(*self.schema["records"][kind[1]], strict=True) if parts else ((), ())
                columns = [self.column(of, part, count) for of, part in zip(kinds, parts, strict=True)]
                return [
                    {"class": kind[1], **{n: c[i] for n, c in zip(names, columns, strict=True)}} for i in range(count)
                ]
