/** The page that pays the invoice of this token. */
export const payUrl = (siteUrl: string, token: string): string => `${siteUrl}/invoice/${token}`;
