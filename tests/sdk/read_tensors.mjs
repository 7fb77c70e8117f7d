// Reads the elements of tensors as docs/protocol.md describes them: takes {protos, frames} from
// standard input, each frame a RunRequest with one item, and writes the elements of each.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [folder] = process.argv.slice(2);
const protobuf = createRequire(join(folder, "package.json"))("protobufjs");
const { protos, frames } = JSON.parse(readFileSync(0, "utf8"));

const root = new protobuf.Root();
const resolve = root.resolvePath.bind(root);
root.resolvePath = (origin, target) =>
  target.startsWith("stagewire/") ? join(protos, target) : resolve(origin, target);
root.loadSync("stagewire/v1/coordinator.proto", { keepCase: true });
const request = root.lookupType("stagewire.v1.RunRequest");

// JSON has no such numbers.
const plain = (number) =>
  Number.isFinite(number) ? number : String(number).replace("NaN", "nan").replace("Infinity", "inf");

// A float of any width: the greatest exponent means infinity and NaN, or in `finite` types only NaN
// where the mantissa is full as well.
const float = (bits, width, mantissaBits, finite = false) => {
  const exponentBits = width - 1 - mantissaBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = bits >>> (width - 1) ? -1 : 1;
  const exponent = (bits >>> mantissaBits) & (2 ** exponentBits - 1);
  const mantissa = bits & (2 ** mantissaBits - 1);
  if (exponent === 2 ** exponentBits - 1) {
    if (finite ? mantissa === 2 ** mantissaBits - 1 : mantissa) return NaN;
    if (!finite) return sign * Infinity;
  }
  const whole = exponent ? mantissa + 2 ** mantissaBits : mantissa;
  return sign * whole * 2 ** ((exponent || 1) - bias - mantissaBits);
};

const eachOf = (size, read) => (view, count) =>
  Array.from({ length: count }, (_, index) => read(view, index * size));

const packed = (signed) => (view, count) =>
  Array.from({ length: count }, (_, index) => {
    const nibble = (view.getUint8(index >> 1) >> (4 * (index % 2))) & 15;
    return signed && nibble > 7 ? nibble - 16 : nibble;
  });

const strings = (toText) => (view, count) => {
  let position = 0;
  return Array.from({ length: count }, () => {
    const length = view.getUint32(position, true);
    const start = view.byteOffset + position + 4;
    position += 4 + length;
    return Buffer.from(view.buffer, start, length).toString(toText);
  });
};

const readers = {
  BOOL: eachOf(1, (view, at) => view.getUint8(at) === 1),
  INT8: eachOf(1, (view, at) => view.getInt8(at)),
  INT16: eachOf(2, (view, at) => view.getInt16(at, true)),
  INT32: eachOf(4, (view, at) => view.getInt32(at, true)),
  INT64: eachOf(8, (view, at) => String(view.getBigInt64(at, true))),
  UINT8: eachOf(1, (view, at) => view.getUint8(at)),
  UINT16: eachOf(2, (view, at) => view.getUint16(at, true)),
  UINT32: eachOf(4, (view, at) => view.getUint32(at, true)),
  UINT64: eachOf(8, (view, at) => String(view.getBigUint64(at, true))),
  FLOAT16: eachOf(2, (view, at) => plain(float(view.getUint16(at, true), 16, 10))),
  BFLOAT16: eachOf(2, (view, at) => plain(float(view.getUint16(at, true), 16, 7))),
  FLOAT32: eachOf(4, (view, at) => plain(view.getFloat32(at, true))),
  FLOAT64: eachOf(8, (view, at) => plain(view.getFloat64(at, true))),
  UTF8: strings("utf8"),
  BYTES: strings("base64"),
  FLOAT8_E4M3FN: eachOf(1, (view, at) => plain(float(view.getUint8(at), 8, 3, true))),
  FLOAT8_E5M2: eachOf(1, (view, at) => plain(float(view.getUint8(at), 8, 2))),
  INT4: packed(true),
  UINT4: packed(false),
};

const found = frames.map((frame) => {
  const { items, payload } = request.decode(Buffer.from(frame, "base64"));
  const { data_type, shape } = items[0].tensor;
  const kind = root.lookupEnum("stagewire.v1.DataType").valuesById[data_type];
  const count = shape.reduce((product, extent) => product * Number(extent), 1);
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  return readers[kind.replace("DATA_TYPE_", "")](view, count);
});
process.stdout.write(JSON.stringify({ found }));
