/** Names and addresses of this machine alone, as a URL has them: what is sent there crosses no network (RFC 6761, section 6.3). */
export const isLoopback = (hostname: string): boolean =>
  /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
