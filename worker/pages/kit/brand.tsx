import { tryGetContext } from "hono/context-storage";
import type { Brand as BrandOf } from "../../../protocol/api/settings.ts";
import type { AppEnv } from "../../app-env.ts";

/** The installation's brand; undefined where it could not be read: the defaults hold then. */
const brandHere = (): BrandOf | undefined => tryGetContext<AppEnv>()?.get("brand");

export const brandName = (): string => brandHere()?.name ?? "Berth";

/** A logo as the address of an image: its SVG never becomes part of a page, so nothing in it runs (SVG 2, secure static mode). */
export const logoAddress = (logo: string): string =>
  logo.startsWith("data:image/png;base64,")
    ? logo
    : `data:image/svg+xml;base64,${Buffer.from(logo, "utf8").toString("base64")}`;

/** The operator's colour, where there is one: a style sheet, since pages have no inline styles. Dark pages need it lighter. */
export const brandSheet = (accent: string | null): string =>
  accent === null || !/^#[0-9a-f]{6}$/i.test(accent)
    ? ""
    : `:root{--accent:light-dark(${accent},color-mix(in srgb,${accent} 45%,#fff));--accent-ink:light-dark(#fff,#000)}\n`;

/** Its address changes with the colour; null: there is none. */
export const brandSheetAddress = (): string | null => {
  const accent = brandHere()?.accent ?? null;
  return accent === null ? null : `/brand.css?accent=${accent.slice(1)}`;
};

/** Name and logo, leading home. */
export const Brand = () => {
  const logo = brandHere()?.logo ?? null;
  return (
    <a class="brand" href="/" aria-label={`${brandName()}, home`}>
      {logo === null ? <span aria-hidden="true">⚓</span> : <img src={logoAddress(logo)} alt="" />}{" "}
      <span>{brandName()}</span>
    </a>
  );
};

/** Links that the law wants on every page, if the operator has set them. */
export const LegalLinks = () => {
  const brand = brandHere();
  const links = [
    ["Terms", brand?.termsUrl],
    ["Privacy", brand?.privacyUrl],
    ["Imprint", brand?.imprintUrl],
    ["Support", brand?.supportUrl],
  ] as const;
  return <>{links.map(([label, address]) => typeof address === "string" && <a href={address}>{label}</a>)}</>;
};
