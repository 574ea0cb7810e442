/** Where a client follows the operation that its request started. */
export const operationHeaders = (id: string): Record<string, string> => ({
  'Operation-Id': id,
  Location: `/v0/operations/${id}`,
})
