/** Downloads a blob as a file with this name. */
export function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Some browsers read the address only after the click.
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
