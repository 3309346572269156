import uPlot from "uplot";
import { localDay, localTime } from "../../protocol/days.ts";

/** Charts to point at, in place of the SVG: one cursor over all of a page, the limit, and marks of deployments. */

type Line = { label: string; values: (number | null)[]; tone?: string };
type Chart = { unit: string; digits: number; limit: number | null; lines: Line[] };
type Marker = { at: number; label: string };

const refreshMs = 60_000;

class TimeCharts extends HTMLElement {
  private plots: uPlot[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;
  private readonly sizes = new ResizeObserver(() => {
    for (const plot of this.plots) plot.setSize({ width: widthOf(plot.root), height: plot.height });
  });

  connectedCallback(): void {
    this.draw();
    this.sizes.observe(this);
    this.timer = setInterval(() => this.refresh(), refreshMs);
  }
  disconnectedCallback(): void {
    this.sizes.disconnect();
    clearInterval(this.timer);
    this.clear();
  }

  private clear(): void {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }

  private draw(): void {
    this.clear();
    const [start, step] = [Number(this.dataset["start"]), Number(this.dataset["step"])];
    const markers = JSON.parse(this.dataset["markers"] ?? "[]") as Marker[];
    for (const figure of this.querySelectorAll<HTMLElement>("figure[data-chart]")) {
      const chart = JSON.parse(figure.dataset["chart"] ?? "") as Chart;
      const times = (chart.lines[0]?.values ?? []).map((_, column) => start + column * step);
      figure.querySelector("svg")?.setAttribute("hidden", "");
      const options = optionsOf(chart, markers, widthOf(figure));
      this.plots.push(new uPlot(options, [times, ...chart.lines.map(({ values }) => values)], figure));
    }
  }

  /** The page's own newer numbers. */
  private refresh(): void {
    if (document.hidden) return;
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.addEventListener("load", () => {
      const page = request.response as Document | null;
      const then = page?.querySelector("time-charts");
      const [olds, news] = [this.querySelectorAll("figure"), then?.querySelectorAll("figure")];
      if (!this.isConnected || !then || olds.length !== news?.length) return;
      for (const name of ["data-start", "data-step", "data-markers"])
        this.setAttribute(name, then.getAttribute(name) ?? "");
      for (const [index, old] of olds.entries()) {
        const next = news[index];
        const [caption, said] = [old.querySelector("figcaption"), next?.querySelector("figcaption")];
        old.setAttribute("data-chart", next?.getAttribute("data-chart") ?? "");
        if (caption && said) caption.replaceChildren(...said.childNodes);
      }
      this.draw();
    });
    request.send();
  }
}

const widthOf = (element: HTMLElement): number =>
  Math.max(200, (element.closest("figure") ?? element).clientWidth);

const colour = (name: string): string => {
  // light-dark() is resolved only where a property has a colour.
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

/** The day where an axis is longer than one, else the time. */
const timeOf = (at: readonly number[]) => {
  const isLong = (at.at(-1) ?? 0) - (at[0] ?? 0) > 100_000;
  return (seconds: number) => {
    const time = new Date(seconds * 1000).toISOString();
    return isLong
      ? localDay(time).slice(0, -" 2026".length)
      : localTime(time, "to the minute").slice(-"15:04".length);
  };
};

/** The places of values between two gaps. */
const alone = (values: Line["values"]): number[] =>
  values.flatMap((value, place) =>
    value !== null && values[place - 1] == null && values[place + 1] == null ? [place] : [],
  );

function optionsOf({ unit, digits, limit, lines }: Chart, markers: Marker[], width: number): uPlot.Options {
  const [soft, hair, warn] = [colour("soft"), colour("hair"), colour("warn")];
  const strokes = lines.map(({ tone }) => colour(tone ?? "accent"));
  const axis = { stroke: soft, grid: { stroke: hair, width: 1 }, ticks: { show: false }, font: "11px Inter" };
  return {
    width,
    height: 162,
    padding: [8, 20, 0, 0],
    cursor: { sync: { key: "page" }, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(limit ?? 0, most, 10 ** -digits) * 1.05] } },
    axes: [
      { ...axis, size: 26, values: (_plot, at) => at.map(timeOf(at)) },
      { ...axis, size: 46 },
    ],
    series: [
      { value: (_plot, at) => (at === null ? "" : localTime(new Date(at * 1000).toISOString())) },
      ...lines.map(({ label, values }, index): uPlot.Series => ({
        label,
        stroke: strokes[index] ?? soft,
        width: 1.5,
        // Where not each point is drawn, those are that no line leads to or from.
        points: { size: 4, filter: (_plot, _series, isShown) => (isShown ? null : alone(values)) },
        value: (_plot, value: number | null) => (value === null ? "–" : `${value.toFixed(digits)} ${unit}`),
      })),
    ],
    hooks: {
      draw: [
        (plot) => {
          const { ctx, bbox } = plot;
          ctx.save();
          ctx.lineWidth = devicePixelRatio;
          if (limit !== null) {
            const y = Math.round(plot.valToPos(limit, "y", true)) + 0.5;
            ctx.strokeStyle = warn;
            ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
            ctx.beginPath();
            ctx.moveTo(bbox.left, y);
            ctx.lineTo(bbox.left + bbox.width, y);
            ctx.stroke();
          }
          ctx.strokeStyle = soft;
          ctx.fillStyle = soft;
          ctx.textAlign = "left";
          ctx.font = `${10 * devicePixelRatio}px Inter`;
          ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
          // From the newest on, a label is left out where it would cover a later one.
          let free = Infinity;
          for (const { at, label } of markers.toSorted((one, other) => other.at - one.at)) {
            const x = Math.round(plot.valToPos(at, "x", true)) + 0.5;
            if (x < bbox.left || x > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
            const [gap, wide] = [3 * devicePixelRatio, ctx.measureText(label).width];
            const left = x + gap + wide > bbox.left + bbox.width ? x - gap - wide : x + gap;
            if (left + wide > free) continue;
            ctx.fillText(label, left, bbox.top + 18 * devicePixelRatio);
            free = left - gap;
          }
          ctx.restore();
        },
      ],
    },
  };
}

customElements.define("time-charts", TimeCharts);
