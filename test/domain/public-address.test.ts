import { describe, expect, it } from "vitest";
import { isPublicIpv6, whyNotSent } from "../../worker/domain/public-address.ts";

describe("an IPv6 address", () => {
  it.each([
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:4860:4860::8888",
    "2003::1",
    "2003::1:2:3:4:5:6",
    "2003:1:2:3:4:5:6:7",
    "3ffe::1",
    "3fff:1000::1",
  ])("%s is public", (address) => expect(isPublicIpv6(address)).toBe(true));
  it.each([
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "::ffff:10.0.0.1",
    "::ffff:a00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:1ff::1",
    "2001:db8::1",
    "2002:a00:1::",
    "3fff::1",
    "4000::1",
    "2001::db8:0:0:0:0:1",
    "2606:4700:4700::10.0.0.1",
    "2606:4700:4700",
    "10.0.0.1",
    "",
    "x",
  ])("%s is not", (address) => expect(isPublicIpv6(address)).toBe(false));
});

describe("nothing is sent to", () => {
  it.each([
    "http://example.com/",
    "ftp://example.com/",
    "https://10.0.0.1/",
    "https://8.8.8.8/",
    "https://0x7f.1/",
    "https://2130706433/",
    "https://[::1]/",
    "https://[2606:4700:4700::1111]/",
    "https://localhost/",
    "https://sub.localhost/",
    "https://host.internal/",
    "https://metadata.google.internal/",
    "https://printer.local/",
    "https://intranet/",
    "https://example.com:8443/",
    "https://user@example.com/",
    "https://user:secret@example.com/",
    "https://:secret@example.com/",
    "not an address",
  ])("%s", (address) => expect(whyNotSent(address)).toEqual(expect.any(String)));
  it.each([
    "https://example.com/",
    "https://example.com:443/a?b=c",
    "https://hooks.slack.com/services/T0/B0/x",
    "https://10.example.com/",
    "https://example.xn--p1ai0/",
  ])("but to %s", (address) => expect(whyNotSent(address)).toBeNull());
});
