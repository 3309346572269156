import { maxPayloadBytes } from "../api/streams.ts";

/**
 * A binary message of the link: the stream's id (4 bytes, big-endian), then the bytes. Their flow is controlled per
 * stream, by the messages `streamCredit`.
 */
const headerBytes = 4;

export function encodeFrame(streamId: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(headerBytes + payload.byteLength);
  new DataView(frame.buffer).setUint32(0, streamId);
  frame.set(payload, headerBytes);
  return frame;
}

/** null: not a frame. The payload is a view of the frame's bytes. */
export function decodeFrame(frame: Uint8Array): { streamId: number; payload: Uint8Array } | null {
  const bytes = frame.byteLength - headerBytes;
  if (bytes < 1 || bytes > maxPayloadBytes) return null;
  return {
    streamId: new DataView(frame.buffer, frame.byteOffset).getUint32(0),
    payload: frame.subarray(headerBytes),
  };
}
