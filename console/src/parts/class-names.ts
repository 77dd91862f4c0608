/** Joins class names. Skips values that are false or null. */
export const classNames = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(' ');

/** Links to items look alike on all pages. */
export const linkClasses = 'inline-flex min-w-0 max-w-full rounded text-accent hover:underline';
/** The name in a row of a list, which leads to the item of the row. */
export const nameLinkClasses = `${linkClasses} items-center font-medium`;
