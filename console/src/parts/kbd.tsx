/** Keys to press one after another, separated by spaces: `g a`. */
export function Keys({ keys }: { readonly keys: string }) {
  return (
    <span className="inline-flex items-center gap-0.5">
      {keys.split(' ').map((key, index) => (
        <kbd
          // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
          key={index}
          className="inline-flex h-5 min-w-5 items-center justify-center rounded border bg-raised px-1 font-sans text-2xs text-muted"
        >
          {key}
        </kbd>
      ))}
    </span>
  );
}
