/**
 * What Cloudflare's edge, or a proxy in front, says of a request: its scheme and its client's address. `npm start` listens
 * on the loopback address alone. A request with an API key is left as it is, because no limit counts its address, and a copy
 * takes as long as a third of Hono's own work.
 */
export function asServed(request: Request): Request {
  const { headers } = request;
  const isHttps = headers.get("X-Forwarded-Proto") === "https";
  const isNamed = headers.has("CF-Connecting-IP") || headers.get("Authorization")?.startsWith("Bearer sk_");
  if (isNamed && !isHttps) return request;
  const copy = isHttps ? new Request(request.url.replace(/^http:/, "https:"), request) : new Request(request);
  if (!headers.has("CF-Connecting-IP")) copy.headers.set("CF-Connecting-IP", "127.0.0.1");
  return copy;
}
