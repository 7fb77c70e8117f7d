// Decodes frames with protobufjs: reads {protos, frames: [{type, frame}]} from standard input and
// writes what it found in each, with large numbers as text and bytes as base64.
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
root.loadSync(
  ["stagewire/v1/coordinator.proto", "stagewire/v1/gateway.proto"],
  { keepCase: true },
);

const found = frames.map(({ type, frame }) => {
  const decoder = root.lookupType(type);
  const message = decoder.decode(Buffer.from(frame, "base64"));
  return decoder.toObject(message, { longs: String, bytes: String });
});
process.stdout.write(JSON.stringify({ version: protobuf.version ?? null, found }));
