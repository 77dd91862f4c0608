/** Downloads a blob as a file with the given name. */
export function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The URL is revoked later, because some browsers read it only after the click.
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
