import { encode } from "uqr";

/** Dark on light in every theme: apps do not read the inverse. `label`: what it holds, for screen readers. */
export const QrCode = ({ text, label }: { text: string; label: string }) => {
  const { size, data } = encode(text, { ecc: "M", border: 3 });
  const runs = data.map((row, y) =>
    row
      .map((isDark) => (isDark ? "1" : "0"))
      .join("")
      .replaceAll(/1+|0+/g, (run, x: number) =>
        run.startsWith("1") ? `M${x} ${y}h${run.length}v1h-${run.length}z` : "",
      ),
  );
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`}>
      <rect width={size} height={size} fill="#fff" />
      <path d={runs.join("")} fill="#000" shape-rendering="crispEdges" />
    </svg>
  );
};
