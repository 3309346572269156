/** IPv6 addresses in the form of RFC 5952; names in lower case, without a final dot. */
export type Addresses = { v4: string[]; v6: string[]; aliases: string[] };

/** RFC 8659, section 4.1; `tag` in lower case. */
export type CaaRecord = { flags: number; tag: string; value: string };
