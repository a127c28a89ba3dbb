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
        raise ValueError("this is not a recording of version 1")
    checksum = zlib.crc32(start)
    while head := file.read(13):
        content = file.read(int.from_bytes(head[1:5], "little"))
        checksum = zlib.crc32(content, zlib.crc32(head[:9], checksum))
        if checksum != int.from_bytes(head[9:], "little"):
            raise ValueError("the file is damaged")
        yield head[:1], unpack(zlib.decompress(content))


def numbers(code, data):
    """Decode numbers stored in planes. Works on little-endian machines."""
    count = len(data) // array.array(code).itemsize
    return array.array(code, b"".join(data[index::count] for index in range(count))).tolist()


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
        """Decode a column into `count` values of a kind."""
        match column:
            case None:
                return []
            case ["same", value]:
                return [value] * count
            case ["each", values]:
                return values
            case ["of", values, indices]:
                return [values[index] for index in self.column("int", indices, count)]
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
                indices = itertools.accumulate(self.column("int", steps, is_short.count(False)))
                short = iter(numbers("f", data))
                return [next(short) if flag else self.doubles[next(indices)] for flag in is_short]
            case ["texts", indices]:
                return [self.texts[index] for index in self.column("int", indices, count)]
            case ["some", flags, values]:
                is_present = self.column("bool", flags, count)
                present = iter(self.column(kind[1], values, sum(is_present)))
                return [next(present) if flag else None for flag in is_present]
            case ["many", lengths, items]:
                sizes = self.column("int", lengths, count)
                values = iter(self.column(kind[1], items, sum(sizes)))
                return [tuple(itertools.islice(values, size)) for size in sizes]
            case ["parts", *parts] if kind[0] == "tuple":
                return list(zip(*map(self.column, kind[1:], parts, itertools.repeat(count)), strict=True))
            case ["parts", *parts]:
                names, kinds = zip(*self.schema["records"][kind[1]], strict=True) if parts else ((), ())
                columns = [self.column(of, part, count) for of, part in zip(kinds, parts, strict=True)]
                return [
                    {"class": kind[1], **{n: c[i] for n, c in zip(names, columns, strict=True)}} for i in range(count)
                ]
