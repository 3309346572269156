import { BlockList } from "node:net";

/** The addresses of Cloudflare's proxy, as published at cloudflare.com/ips. */
const ranges = [
  "173.245.48.0/20",
  "103.21.244.0/22",
  "103.22.200.0/22",
  "103.31.4.0/22",
  "141.101.64.0/18",
  "108.162.192.0/18",
  "190.93.240.0/20",
  "188.114.96.0/20",
  "197.234.240.0/22",
  "198.41.128.0/17",
  "162.158.0.0/15",
  "104.16.0.0/13",
  "104.24.0.0/14",
  "172.64.0.0/13",
  "131.0.72.0/22",
  "2400:cb00::/32",
  "2606:4700::/32",
  "2803:f800::/32",
  "2405:b500::/32",
  "2405:8100::/32",
  "2a06:98c0::/29",
  "2c0f:f248::/32",
];

const proxy = new BlockList();
for (const range of ranges) {
  const [address = "", prefix] = range.split("/");
  proxy.addSubnet(address, Number(prefix), address.includes(":") ? "ipv6" : "ipv4");
}

/** Whether the address belongs to Cloudflare's proxy, which hides the record behind it. */
export const isCloudflare = (address: string): boolean =>
  proxy.check(address, address.includes(":") ? "ipv6" : "ipv4");
