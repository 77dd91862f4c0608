import { useState } from 'react';

/** Returns the values in a form's fields, and a function that changes some of them. */
export function useFields<T extends object>(initial: T | (() => T)): [T, (part: Partial<T>) => void] {
  const [fields, setFields] = useState(initial);
  return [fields, (part) => setFields((before) => ({ ...before, ...part }))];
}
