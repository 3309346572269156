/** Drawn on a grid of 24, with lines of the text's colour. */
const paths = {
  home: ["M4 11l8-7 8 7", "M6 9.5V20h12V9.5", "M10 20v-6h4v6"],
  sites: ["M4 5h16v14H4z", "M4 9h16", "M7 7h.01", "M10 7h.01"],
  databases: ["M5 6c0-4 14-4 14 0v12c0 4-14 4-14 0z", "M5 6c0 4 14 4 14 0", "M5 12c0 4 14 4 14 0"],
  activity: ["M3 12h4l3-7 4 14 3-7h4"],
  billing: ["M3 6h18v12H3z", "M3 10h18", "M6 15h4"],
  settings: ["M4 7h10", "M18 7h2", "M4 17h2", "M10 17h10", "M14 5v4", "M8 15v4"],
  docs: ["M6 3h9l4 4v14H6z", "M14 3v5h5", "M9 13h7", "M9 17h7"],
  operator: ["M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z", "M9 12l2 2 4-4"],
  more: ["M5 12h.01", "M12 12h.01", "M19 12h.01"],
  switch: ["M8 9l4-4 4 4", "M8 15l4 4 4-4"],
  search: ["M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14z", "M16 16l4 4"],
  external: ["M14 4h6v6", "M20 4l-9 9", "M18 14v6H4V6h6"],
} as const;
export type IconName = keyof typeof paths;

/** Decoration: a word always stands beside it. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    {paths[name].map((d) => (
      <path d={d} />
    ))}
  </svg>
);
