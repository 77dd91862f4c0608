/** Heights and opacities of the logo's rows of dots. */
const rows = [
  [10, 1],
  [16.5, 0.75],
  [23, 0.45],
] as const;

/** Draws mark.svg as part of the page, because a browser loads and parses each image as a separate document. */
export const Mark = ({ className }: { readonly className?: string }) => (
  <svg viewBox="0 0 32 32" aria-hidden="true" className={className}>
    <rect width="32" height="32" rx="7" fill="#4f46e5" />
    {rows.map(([y, opacity]) => (
      <g key={y} fill="#fff" opacity={opacity}>
        <circle cx="9" cy={y} r="2.6" />
        <circle cx="16" cy={y} r="2.6" />
        <circle cx="23" cy={y} r="2.6" />
      </g>
    ))}
  </svg>
);
