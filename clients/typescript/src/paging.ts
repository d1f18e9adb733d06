/** A page of a list, and where the next one begins. */
export interface Page<T> {
  data: T[];
  metadata: { nextCursor: string | null; more?: boolean | undefined };
}

/** Every item of a list, from its beginning to its end; a page is asked for when the one before it is used up. */
export async function* walk<T>(page: (cursor: string) => Promise<Page<T>>): AsyncGenerator<T, void, undefined> {
  let cursor: string | null = "";
  while (cursor !== null) {
    const { data, metadata }: Page<T> = await page(cursor);
    yield* data;
    // A feed has a cursor at its end, too, and says whether that is where it stands.
    cursor = metadata.more === false ? null : metadata.nextCursor;
  }
}
