export interface paths {
    "/v0/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream changes as server-sent events
         * @description The stream begins now, at the time in `from`, or after the event in `Last-Event-ID`, even if another process or an earlier run of Berth sent it. It contains only events that the key may read. Lines with only an id keep a quiet stream from falling behind. 410 if events after that id are no longer kept: read the resources that you follow, then start again without an id.
         *
         *     Scope: `org:files:read` or `org:groups:read` or `org:gateways:read` or `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/public/pin_by_cid": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pin requests that are pending or have failed
         * @description Scope: `org:files:read`.
         */
        get: operations["listPinByCid"];
        put?: never;
        /**
         * Pin a CID to the public network
         * @description Immediately returns the record, in status `prechecking`. Follow the operation named by `Operation-Id`, or ask for `Prefer: wait=N`. Once pinned, it is a file: `GET /v3/files/public/{id}`.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["pinByCid"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/public/pin_by_cid/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Withdraw a pin request
         * @description Ends a retrieval in progress and removes the request from the queue. To delete a pinned file, delete it as a file.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["cancelPinByCid"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/public/pin_by_cid/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a failed pin request
         * @description Starts a new operation with the same parameters. A request in progress stays unchanged; `Operation-Id` then names its operation. An `Idempotency-Key` has no effect: a repeat after the new operation has failed starts another one.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["retryPinByCid"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/psa/pins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pins
         * @description Newest first, including uploaded files. A page has more than `limit` pins only if more than that were created in one millisecond.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["psaListPins"];
        put?: never;
        /**
         * Pin a CID
         * @description Scope: `org:files:write`.
         */
        post: operations["psaAddPin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/psa/pins/{requestid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a pin
         * @description Scope: `org:files:read`.
         */
        get: operations["psaGetPin"];
        put?: never;
        /**
         * Replace a pin
         * @description The new pin has its own id, and the old pin is gone at once. The old pin’s content is released after the new one has been retrieved, so that shared blocks are not fetched again.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["psaReplacePin"];
        /**
         * Remove a pin
         * @description The pin is gone at once; an operation releases its content unless another file keeps it.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["psaRemovePin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a file, a folder or a CAR
         * @description Responds once the content is pinned. If a form has `network` before `file`, it must also have `car` and `cid_version` before it, and is written directly to the IPFS node. The MIME type is detected from the bytes. If they are only recognised as text or XML, or not at all, the Content-Type of the part is used. The request itself imports a CAR (paid plans, public network), and its response is the outcome.
         *
         *     With `Upload-Length` and `Upload-Metadata` instead of a form, the request begins a resumable upload (tus 1.0.0). The response is 201; send the bytes to `Location`. The metadata has the fields of the form, `filename`, `filetype` and `folder`. With `folder` set to `true`, the bytes are a CAR of a folder, which replaces the several files of a form and is allowed wherever those are.
         *
         *     Scope: `org:files:write` or `org:private_files:write`.
         */
        post: operations["uploadFile"];
        delete?: never;
        /**
         * Get the supported features of resumable uploads
         * @description tus 1.0.0. Also answers the CORS preflight for uploads from pages of other origins.
         *
         *     Also at `/v3/files/{network}`, `/v3/files/tus/{id}/{token}`.
         */
        options: operations["resumableUploadOptions"];
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/pinFileToIPFS": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a file or a folder (older API)
         * @description Uploads to the public network, unless the URL or the form names the private one, or the key is for private uploads (`org:private_files:write`). The `pinata` SDK sends folders here, without the network that its caller chose.
         *
         *     Scope: `org:files:write` or `org:private_files:write`.
         *
         *     Also at `/v3/pinning/pinFileToIPFS`.
         */
        post: operations["pinFileToIPFS"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/pinJSONToIPFS": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload JSON as a file (older API)
         * @description Uploads to the public network. The body is `{"pinataContent": …, "pinataMetadata": …, "pinataOptions": …}`, or the content itself: an object without these fields. The file contains the JSON without whitespace.
         *
         *     Scope: `org:files:write`.
         *
         *     Also at `/v3/pinning/pinJSONToIPFS`.
         */
        post: operations["pinJSONToIPFS"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/sign": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a URL for uploads without a key
         * @description Anyone with the URL can upload any number of times until it expires, within the plan’s rate limit, which counts all uploads through a key’s URLs together. The URL ends earlier if the key that signed it is revoked, or if its user leaves the workspace. With `url`, this is the same as `POST /v3/files/private/download_link`.
         *
         *     Scope: `org:files:write` or `org:private_files:write`.
         */
        post: operations["signUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/private/download_link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a link to a private file
         * @description Anyone with the link can read the file until it expires.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["signDownload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/private/{id}/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a link to view a private file
         * @description The link is at the oldest gateway of the workspace and valid for 15 minutes. It only needs read permission; `POST /v3/files/private/download_link` creates longer-lived links to share.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["linkToFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/{network}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List files
         * @description Scope: `org:files:read`.
         */
        get: operations["listFiles"];
        put?: never;
        /**
         * Upload to a signed URL
         * @description Send it to a URL from `POST /v3/files/sign`; no key is needed. The body is the same as for `POST /v3/files`; with `Upload-Length`, the request begins a resumable upload, as it does there. The upload cannot change what the URL fixes.
         */
        post: operations["uploadBySignedUrl"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/tus/{id}/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Cancel a resumable upload
         * @description tus 1.0.0.
         */
        delete: operations["terminateUpload"];
        options?: never;
        /**
         * Get the progress of a resumable upload
         * @description tus 1.0.0. Continue at `Upload-Offset`. If all bytes have arrived, the response waits for the file, and has its CID in `upload-cid`. A request that finds the upload busy for 50 seconds gets 423, and may be repeated.
         */
        head: operations["describeUpload"];
        /**
         * Send bytes of a resumable upload
         * @description tus 1.0.0. The response to the last bytes is sent once the file exists, with its CID in `upload-cid`. A client that misses that response repeats its request, or sends HEAD. A request that finds the upload busy for 50 seconds gets 423, and may be repeated.
         */
        patch: operations["appendToUpload"];
        trace?: never;
    };
    "/v3/files/{network}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a file
         * @description Scope: `org:files:read`.
         */
        get: operations["getFile"];
        /**
         * Change a file's name, metadata or expiry
         * @description Omitted fields stay unchanged.
         *
         *     Scope: `org:files:write`.
         */
        put: operations["updateFile"];
        post?: never;
        /**
         * Delete a file
         * @description The file is gone at once; an operation unpins its content unless another file keeps it.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["deleteFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/pinByHash": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pin a CID to the public network (older API)
         * @description Returns immediately. `GET /v3/files/public/pin_by_cid` lists the request until it is pinned.
         *
         *     Scope: `org:files:write`.
         *
         *     Also at `/v3/pinning/pinByHash`.
         */
        post: operations["pinByHash"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/data/pinList": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List files (older API)
         * @description Newest first. Berth does not list deleted files: `status=unpinned` finds none.
         *
         *     Scope: `org:files:read`.
         *
         *     Also at `/v3/data/pinList`.
         */
        get: operations["pinList"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/unpin/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete all files and pin requests of a CID (older API)
         * @description Scope: `org:files:write`.
         *
         *     Also at `/v3/pinning/unpin/{hash}`.
         */
        delete: operations["unpin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/{network}/{id}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the entries of a folder
         * @description The entries of a file that is a folder, or of a folder inside it, sorted by name unless the folder is sharded. Swaps are ignored.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["listEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/{network}/{id}/details": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a file's signature and swaps
         * @description Returns both in one request, which succeeds even for a file without either.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["getFileDetails"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/groups/{network}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List groups
         * @description Scope: `org:groups:read`.
         */
        get: operations["listGroups"];
        put?: never;
        /**
         * Create a group
         * @description A group contains only files of its own network.
         *
         *     Scope: `org:groups:write`.
         */
        post: operations["createGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/groups/{network}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a group
         * @description Scope: `org:groups:read`.
         */
        get: operations["getGroup"];
        /**
         * Change a group's name, or whether it is public
         * @description Omitted fields stay unchanged.
         *
         *     Scope: `org:groups:write`.
         */
        put: operations["updateGroup"];
        post?: never;
        /**
         * Delete a group; its files stay
         * @description Scope: `org:groups:write`.
         */
        delete: operations["deleteGroup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/groups/{network}/{id}/ids/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Put a file into a group
         * @description A file is in at most one group: it leaves its previous group.
         *
         *     Scope: `org:groups:write`.
         */
        put: operations["addFileToGroup"];
        post?: never;
        /**
         * Take a file out of a group
         * @description The file itself stays. Nothing changes if it is not in the group.
         *
         *     Scope: `org:groups:write`.
         */
        delete: operations["removeFileFromGroup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/{network}/swap/{cid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the swap history of a CID
         * @description The history belongs to the workspace of the gateway. The history of a public CID may be read with any workspace’s key.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["swapHistory"];
        /**
         * Swap a CID
         * @description The gateways of the workspace that have the hot swaps plugin then serve the new content at the address of the original. Both must be files of the workspace on this network. A swap is a single step: a swap of the new CID is not followed. Repeating a swap changes nothing. The first swap of a workspace installs the plugin in its oldest gateway, unless another gateway has it.
         *
         *     Scope: `org:files:write`.
         */
        put: operations["swapCid"];
        post?: never;
        /**
         * Remove a swap
         * @description The original is served again. The removal becomes a history entry without a CID.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["deleteSwap"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/ipfs/swap/{cid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the swap history of a CID
         * @description The history belongs to the workspace of the gateway. The history of a public CID may be read with any workspace’s key.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["swapHistoryOlder"];
        /**
         * Swap a CID
         * @description The gateways of the workspace that have the hot swaps plugin then serve the new content at the address of the original. Both must be files of the workspace on this network. A swap is a single step: a swap of the new CID is not followed. Repeating a swap changes nothing. The first swap of a workspace installs the plugin in its oldest gateway, unless another gateway has it.
         *
         *     Scope: `org:files:write`.
         */
        put: operations["swapCidOlder"];
        post?: never;
        /**
         * Remove a swap
         * @description The original is served again. The removal becomes a history entry without a CID.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["deleteSwapOlder"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/{network}/signature/{cid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the signature of a CID
         * @description It stays when the file is deleted.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["getSignature"];
        put?: never;
        /**
         * Add a signature to a CID
         * @description The CID must be a file of the workspace without another signature. Berth checks the form, but not whether the address signed it: readers check that with the signed date.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["addSignature"];
        /**
         * Remove the signature of a CID
         * @description Scope: `org:files:write`.
         */
        delete: operations["deleteSignature"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the plugins of all gateways
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateway_plugins`.
         */
        get: operations["listPlugins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/marketplace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the plugins that a gateway may have
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/plugins_marketplace`.
         */
        get: operations["listOfferedPlugins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/marketplace/{plugin_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a plugin that a gateway may have
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/plugins_marketplace/{plugin_id}`.
         */
        get: operations["getOfferedPlugin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/{gateway_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the plugins of a gateway
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateway_plugins/{gateway_id}`.
         */
        get: operations["listGatewayPlugins"];
        put?: never;
        /**
         * Install a plugin in a gateway
         * @description Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateway_plugins/{gateway_id}`.
         */
        post: operations["installPlugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/{gateway_id}/plugin/{plugin_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a plugin from a gateway
         * @description Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateway_plugins/{gateway_id}/plugin/{plugin_id}`.
         */
        delete: operations["removePlugin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List gateways
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways`.
         */
        get: operations["listGateways"];
        put?: never;
        /**
         * Create a gateway
         * @description A new gateway has no plugins, and is open to everyone until it has an access token.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways`.
         */
        post: operations["createGateway"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/exists/{domain}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check whether a gateway name is taken
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways/exists/{domain}`.
         */
        get: operations["gatewayExists"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a gateway
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways/{id}`.
         */
        get: operations["getGateway"];
        put?: never;
        post?: never;
        /**
         * Delete a gateway
         * @description Files and swaps stay. The name is then free for anyone.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}`.
         */
        delete: operations["deleteGateway"];
        options?: never;
        head?: never;
        /**
         * Change what a gateway serves
         * @description Omitted fields stay unchanged. Other web processes follow within two seconds.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}`.
         */
        patch: operations["changeGatewayServing"];
        trace?: never;
    };
    "/v3/gateways/{id}/access_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an access token of a gateway
         * @description With its first token, a gateway becomes restricted: within two seconds, it serves public content only to clients that send a token as `?pinataGatewayToken=` or in `x-pinata-gateway-token`.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/access_tokens`.
         */
        post: operations["createGatewayToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/access_tokens/{item_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an access token of a gateway
         * @description Without its last token, a gateway is open to everyone: create the new token first.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/access_tokens/{item_id}`.
         */
        delete: operations["deleteGatewayToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/custom_domain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add a custom domain to a gateway
         * @description At most 5 per gateway. The domain is `pending` until its TXT record (`txt_name`, `txt_value`) is seen: immediately if it already exists, otherwise with `verifyGatewayDomain` or by automatic checks, which become less frequent and end after two weeks. The record is the same as for agents of the workspace. The first workspace to prove a name gets it: others get 409 from then on. A name must not contain or look like the service’s names, or be one of its hosts. Custom domains are not part of the free plan.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/custom_domain`.
         */
        post: operations["addGatewayDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/custom_domain/{custom_domain_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a custom domain of a gateway
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/custom_domain/{custom_domain_id}`.
         */
        get: operations["getGatewayDomain"];
        put?: never;
        post?: never;
        /**
         * Delete a custom domain of a gateway
         * @description The name is then free for anyone; web processes serve it for at most two more seconds.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/custom_domain/{custom_domain_id}`.
         */
        delete: operations["deleteGatewayDomain"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/custom_domain/{custom_domain_id}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check the TXT record of a custom domain now
         * @description 409 if someone else has already proven the domain. 503 if no DNS server responds; the domain then stays pending.
         *
         *     Scope: `org:gateways:write`.
         */
        post: operations["verifyGatewayDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/analytics/gateways/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what a gateway serves most, and to which programs and pages
         * @description Requests and bytes that gateways served of content that their workspace keeps, delayed by a minute at most. Client addresses are not stored, so countries and regions are unknown. Each gateway has at most 2,000 different rows per day; requests beyond them are counted as `(other)`. For `country` and `region` the list is empty.
         *
         *     Scope: `org:analytics:read`.
         *
         *     Also at `/v3/ipfs/gateway_analytics_top`.
         */
        get: operations["topAnalytics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/analytics/gateways/time_series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what a gateway served by day or week
         * @description Requests and bytes that gateways served of content that their workspace keeps, delayed by a minute at most. Client addresses are not stored, so countries and regions are unknown. Each gateway has at most 2,000 different rows per day; requests beyond them are counted as `(other)`. Weeks begin on Monday. Periods without a request are left out.
         *
         *     Scope: `org:analytics:read`.
         *
         *     Also at `/v3/ipfs/gateway_analytics_time_series`.
         */
        get: operations["analyticsTimeSeries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/data/testAuthentication": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Test an API key
         * @description Accepts any key.
         *
         *     Also at `/data/testAuthentication`.
         */
        get: operations["testAuthentication"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/data/userPinnedDataTotal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the files on both networks, and their bytes
         * @description Scope: `org:files:read`.
         *
         *     Also at `/data/userPinnedDataTotal`.
         */
        get: operations["getPinnedTotal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the stored amount and the plan’s limits
         * @description Scope: `org:files:read`.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/pinata/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys
         * @description Owners see all keys of the workspace, others their own.
         *
         *     Scope: `org:read`.
         *
         *     Also at `/v3/api_keys`.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description A key may grant no more than the key that creates it, and expires no later. A key created in a dashboard session outlives the session. Keys with a limited number of uses cannot create keys.
         *
         *     Scope: `org:write`.
         *
         *     Also at `/v3/api_keys`.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/pinata/keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Revoke an API key
         * @description A key can revoke itself, and other keys whose scopes it has. Members can revoke their own keys, owners all keys.
         *
         *     Scope: `org:write`.
         */
        put: operations["revokeKey"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/api_keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description A key can revoke itself, and other keys whose scopes it has. Members can revoke their own keys, owners all keys.
         *
         *     Scope: `org:write`.
         */
        delete: operations["deleteKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the key’s workspaces
         * @description A key belongs to one workspace; use this to learn its id.
         *
         *     Scope: `org:read`.
         */
        get: operations["listWorkspaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the workspace, its plan and its usage
         * @description Scope: `org:read`.
         */
        get: operations["getWorkspace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Rename the workspace
         * @description Its gateways keep their names. If another workspace has the name, a number is appended.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         */
        patch: operations["renameWorkspace"];
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List members
         * @description Scope: `org:read`.
         *
         *     Only for owners of the workspace.
         */
        get: operations["listMembers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/members/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a member from the workspace
         * @description The member’s keys for the workspace stop working at once, and stay revoked if the member rejoins. 409 for the last owner of a workspace.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         */
        delete: operations["removeMember"];
        options?: never;
        head?: never;
        /**
         * Change a member’s role
         * @description Applies to all of the member’s keys at once. 409 for the last owner of a workspace.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         */
        patch: operations["changeMember"];
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/invitations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List invitations
         * @description Scope: `org:read`.
         *
         *     Only for owners of the workspace.
         */
        get: operations["listInvitations"];
        put?: never;
        /**
         * Invite a member
         * @description The holder of the token can become a member, once. 403 `Invitation limit reached` while 100 invitations are pending. 403 for keys with a limited number of uses.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         */
        post: operations["createInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/invitations/{invitationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an invitation
         * @description An invitation that has ended stays unchanged. 409 if it was accepted: remove the member instead.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         */
        delete: operations["revokeInvitation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/invitations/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invitation as a new user
         * @description Requires no key: the token authorizes the request. If another user has the name, a number is appended.
         */
        post: operations["acceptInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys with their last use
         * @description Owners see all keys of the workspace, others their own.
         *
         *     Scope: `org:read`.
         */
        get: operations["listWorkspaceKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key, by its id
         * @description A key can revoke itself, and other keys whose scopes it has. Members can revoke their own keys, owners all keys.
         *
         *     Scope: `org:write`.
         */
        delete: operations["revokeWorkspaceKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the ways to sign in
         * @description In addition to login links, which always work.
         */
        get: operations["waysToSignIn"];
        put?: never;
        /**
         * Sign in with the token of a login link
         * @description A link is valid once, for 15 minutes: `npm start` and `npx berth login-link` print one. The response sets the session cookie. 403 for a page of another origin.
         */
        post: operations["login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/invitation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invitation as a new user, and sign in
         * @description For people; a program accepts an invitation with `POST /v0/invitations/accept` and gets a key. The response sets the session cookie. 403 for a page of another origin. If another user has the name, a number is appended.
         */
        post: operations["loginByInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the current session
         * @description 403 for a key: revoke it instead.
         *
         *     Accepts any key.
         */
        post: operations["logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the caller and their permissions
         * @description Accepts any key.
         */
        get: operations["whoAmI"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions of the user
         * @description The user’s sessions in this workspace that have not ended, newest first.
         *
         *     Scope: `org:read`.
         */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move the session to another workspace of the user
         * @description The session continues there with the same cookie and expiry; its open requests here end. It is listed there as another session, with its own id. 403 if the user is not a member there, and for a key, which belongs to one workspace.
         *
         *     Accepts any key.
         */
        post: operations["moveSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions/join": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invitation as the user of the session
         * @description The session continues in the joined workspace, as when it is moved there. 409 if the user is already a member. 403 for a key: its holder must not decide where its user signs in.
         *
         *     Accepts any key.
         *
         *     Also at `/v0/invitations/join`.
         */
        post: operations["joinWithSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions/{sessionId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a session of the user
         * @description Takes effect at once. The caller is another session of the user, or a key of theirs with `admin`.
         *
         *     Accepts any key.
         */
        delete: operations["revokeSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin a sign-in with a passkey
         * @description Pass the result through `PublicKeyCredential.parseRequestOptionsFromJSON` to `navigator.credentials.get` as `publicKey`. Its challenge is valid once, for 5 minutes.
         */
        post: operations["beginPasskeyLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in with a passkey
         * @description The response sets the session cookie. 403 if the user is not a member of the workspace.
         */
        post: operations["loginWithPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the passkeys of the user
         * @description They are the same in all workspaces. Newest first, 20 at most.
         *
         *     Scope: `org:read`.
         */
        get: operations["listPasskeys"];
        put?: never;
        /**
         * Register a passkey
         * @description Requires a session: 403 for keys. 409 if the passkey is already registered.
         *
         *     Accepts any key.
         */
        post: operations["createPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/passkeys/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin registering a passkey
         * @description Pass the result through `PublicKeyCredential.parseCreationOptionsFromJSON` to `navigator.credentials.create` as `publicKey`. Its challenge is valid once, for 5 minutes. Requires a session: 403 for keys, and for users who have 20 passkeys.
         *
         *     Accepts any key.
         */
        post: operations["beginPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/passkeys/{passkeyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a passkey
         * @description The passkey no longer signs anyone in; sessions that it opened continue. Requires a session: 403 for keys.
         *
         *     Accepts any key.
         */
        delete: operations["deletePasskey"];
        options?: never;
        head?: never;
        /**
         * Rename a passkey
         * @description Requires a session: 403 for keys.
         *
         *     Accepts any key.
         */
        patch: operations["renamePasskey"];
        trace?: never;
    };
    "/v0/login/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin a sign-in at the OpenID provider
         * @description Open `url` in the browser. The provider sends the browser back to `/login` with a query that is valid once, in this browser, for 10 minutes. 404 if no provider is set, or if the invitation cannot be accepted.
         */
        post: operations["beginOidcLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/oidc/finish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in with the OpenID provider’s response
         * @description The response sets the session cookie. 403 if the identity is not known here. 404 and 409 as when accepting an invitation.
         */
        post: operations["loginWithOidc"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the identities of the user
         * @description The user’s identities at the OpenID provider, the same in all workspaces. Newest first, 10 at most.
         *
         *     Scope: `org:read`.
         */
        get: operations["listIdentities"];
        put?: never;
        /**
         * Link an identity with the user
         * @description Uses the OpenID provider’s response. Requires a session: 403 for keys, and for users who have 10 identities. 409 if another user has the identity.
         *
         *     Accepts any key.
         */
        post: operations["linkIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/identities/begin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin linking an identity
         * @description As for a sign-in, except that the `state` in the query begins with `link.`. Requires a session: 403 for keys. 404 if no provider is set.
         *
         *     Accepts any key.
         */
        post: operations["beginIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/identities/{identityId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Unlink an identity
         * @description The identity no longer signs anyone in; sessions that it opened continue. Requires a session: 403 for keys.
         *
         *     Accepts any key.
         */
        delete: operations["unlinkIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/feedback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a message to the operator
         * @description It is stored with the names of the workspace and the user, and with the key or agent that sent it. 403 `Feedback limit reached` while 20 messages of the key or agent, or 100 of the workspace, wait for the operator.
         *
         *     Accepts any key.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         */
        post: operations["sendFeedback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks
         * @description Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks`.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description The URL must use https and a host on the public internet, unless the operator allows another host by name. 403 `Webhook limit reached` at 20. 503 `Secrets not configured` if the operator does not allow secrets to be stored.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks`.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a webhook
         * @description Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}`.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description Waiting deliveries are not sent.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}`.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change, enable or disable a webhook
         * @description Omitted fields stay unchanged. Disabling a webhook ends its waiting deliveries; after enabling, it receives only new events.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}`.
         */
        patch: operations["changeWebhook"];
        trace?: never;
    };
    "/v0/webhooks/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook
         * @description The former secret also signs for 24 hours, so that receivers can switch without losing deliveries.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}/rotate`.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test event to a webhook
         * @description Sends a delivery with the type `webhook.test`, regardless of the webhook’s event types. 409 while the webhook is disabled. The delivery shows the outcome.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}/test`.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of a webhook
         * @description Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}/deliveries`.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/deliveries/{deliveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a delivery with its body
         * @description Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}/deliveries/{deliveryId}`.
         */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/deliveries/{deliveryId}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a delivery again
         * @description Uses the same `webhook-id`, and starts over with all attempts. 409 while the delivery is in progress or the webhook is disabled.
         *
         *     Scope: `admin`.
         *
         *     Only for owners of the workspace.
         *
         *     Also at `/v3/webhooks/{id}/deliveries/{deliveryId}/redeliver`.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List plans with their limits
         * @description All plans, by name. They are rows of the database, where the operator changes them.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listPlans"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the workspaces of the instance with their usage
         * @description Scope: `instance:read`.
         */
        get: operations["listAllWorkspaces"];
        put?: never;
        /**
         * Create a workspace
         * @description Also creates a gateway, and a key with `admin` for the user who owns the workspace. 409 if another workspace has the name.
         *
         *     Scope: `instance:write`.
         */
        post: operations["createWorkspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/workspaces/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a workspace and its usage
         * @description Scope: `instance:read`.
         */
        get: operations["getAnyWorkspace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Put a workspace on another plan, or rename it
         * @description Omitted fields stay unchanged. A new plan applies at once to all keys of the workspace. 409 if another workspace has the name.
         *
         *     Scope: `instance:write`.
         */
        patch: operations["changeWorkspace"];
        trace?: never;
    };
    "/v0/admin/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the totals of the instance
         * @description Content that two workspaces keep is counted twice. At most two seconds old.
         *
         *     Scope: `instance:read`.
         */
        get: operations["getInstanceUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the health of each component, with advice
         * @description The components of `/readyz`, as this web process and all workers see them. Unhealthy components come with a cause and advice.
         *
         *     Scope: `instance:read`.
         */
        get: operations["getInstanceHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the queues with their waiting and running operations
         * @description At most two seconds old.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List workers with their versions, slots and last heartbeats
         * @description A worker that exited normally is not listed; one that died stays listed for an hour.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listWorkers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who did what in the workspace
         * @description Every request except reads, and every sign-in. With `Accept: application/x-ndjson`: all matching entries without pages, one JSON object per line.
         *
         *     Scope: `org:read`.
         *
         *     Only for owners of the workspace.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who did what in the instance
         * @description As `GET /v0/audit`, for all workspaces, including entries without a workspace: refused sign-ins and commands. With `Accept: application/x-ndjson`: all matching entries without pages, one JSON object per line.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listInstanceAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List operations
         * @description The operations that the key may read: on files with `org:files:read`, on agents with `org:agents:read`.
         *
         *     Scope: `org:files:read` or `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listOperations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an operation, or wait for its end
         * @description Scope: `org:files:read` or `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getOperation"];
        put?: never;
        post?: never;
        /**
         * Cancel an operation
         * @description What it was supposed to create is withdrawn. A running operation ends within about a second. Requires the scope to change its subject.
         *
         *     Scope: `org:files:write` or `org:agents:write`.
         */
        delete: operations["cancelOperation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/operations/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream an operation as server-sent events
         * @description Sends an `operation` event now and after each change; the stream ends with the operation. The event id is a version: a client that reconnects with `Last-Event-ID` receives only newer ones.
         *
         *     Scope: `org:files:read` or `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["streamOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restart an agent, optionally on another version of its engine
         * @description Restarts the gateway with its current secrets, channels and settings, then runs the `start` script. If another `version` cannot run the agent (an older one may not read a newer one’s files), the response is 400 with the reason in `Error-Detail`, and the agent continues on its old version.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["restartAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/scripts/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run the scripts of an agent again
         * @description `build`, then `start`. The response does not wait for them; the agent’s status shows their results.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["retryScripts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/available-agent-versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions that an agent can restart on
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listAgentVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/update": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check for a newer version of an agent’s engine
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getAgentUpdate"];
        put?: never;
        /**
         * Restart an agent on the newest version
         * @description The same as a restart with that `version`; `tag` can name another version.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["updateAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/engines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the engines that agents can have
         * @description Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listEngines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/available-agent-versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of engines that agents can run
         * @description Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listEngineVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the models that a new agent can have without a key
         * @description Whether the operator has set a model; and if agents are processes of the same machine, the models of Ollama (port 11434), LM Studio (1234) and llama.cpp (8080) on loopback, for the `localModel` of a new agent.
         *
         *     Scope: `org:agents:read`.
         */
        get: operations["findModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List how much memory each agent uses now
         * @description Only agents that run and respond, ordered and paged like the list of agents. Agents measure every 15 seconds; a worker reads them every few seconds.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listAgentUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what an agent uses: memory, processor, disk
         * @description Measured in the sandbox every 15 seconds, for the last hour; a restart of the sandbox clears it.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readAgentUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List agents
         * @description Oldest first. If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listAgents"];
        put?: never;
        /**
         * Create an agent
         * @description Waits up to 60 seconds for the agent to start (`Prefer` changes that), and returns the agent in its current state: `running`, or still `starting`; the operation shows the steps. If its gateway does not start, the response is 500 with the agent, which exists and can be restarted. An agent without a model is also `running`: `statusReason` explains how to give it one.
         *
         *     With `templateId` its first files come from a template. What the template’s manifest asks for (skills, tasks, routes, a model) is set up once the gateway runs. Secrets named in the manifest are not attached. 404 if the template or a skill does not exist.
         *
         *     403 `agents_not_walled` if agents could read Berth’s keys, unless the operator has accepted that.
         *
         *     A name must not have control characters, line breaks, characters that change the text direction, or any of < > " ` \\.
         *
         *     Scope: `org:agents:write`.
         *
         *     Accepts a platform token with workspace scope.
         */
        post: operations["createAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an agent
         * @description Its description, what is attached to it, and the current state of its gateway and disk.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getAgent"];
        put?: never;
        post?: never;
        /**
         * Delete an agent with its container and files
         * @description The agent is gone at once and for good; its id is never reused. The response waits until its container and volume are removed; 202 if that takes longer than 25 seconds.
         *
         *     Scope: `org:agents:write`.
         *
         *     Does not accept the agent’s own tokens.
         */
        delete: operations["deleteAgent"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/platform/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change how an agent is described
         * @description Omitted fields stay unchanged; null removes a value. The agent’s environment changes at its next restart.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        patch: operations["changeMetadata"];
        trace?: never;
    };
    "/v0/agents/{agentId}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the state of an agent
         * @description The current state of its gateway, scripts and disk, and the skills that it lacks.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getAgentStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the secrets of the workspace
         * @description All secrets, newest first, with the agents that use them.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listSecrets"];
        put?: never;
        /**
         * Add a secret to the workspace
         * @description Stored encrypted, and passed as an environment variable to the agents that it is attached to. 400 for a name that the agents’ own programs need, 403 `Secret limit reached`, 409 `Duplicate secret name`, 503 `Secrets not configured` if the operator has not configured secrets.
         *
         *     **Reserved names** (`*` stands for any rest): `BASHOPTS`, `BASH_ENV`, `BASH_LOADABLES_PATH`, `ENV`, `FPATH`, `HOME`, `HOSTNAME`, `IFS`, `LOGNAME`, `OLDPWD`, `PATH`, `PROMPT_COMMAND`, `PS0`, `PS1`, `PS2`, `PS4`, `PWD`, `SHELL`, `SHELLOPTS`, `TMPDIR`, `USER`, `XDG_*`, `ZDOTDIR`, `GCONV_PATH`, `GLIBC_TUNABLES`, `LD_*`, `LOCPATH`, `MALLOC_ARENA_MAX`, `OPENSSL_CONF`, `OPENSSL_ENGINES`, `OPENSSL_MODULES`, `BUN_OPTIONS`, `NODE_COMPILE_CACHE`, `NODE_EXTRA_CA_CERTS`, `NODE_ICU_DATA`, `NODE_OPTIONS`, `NODE_PATH`, `NODE_REPL_EXTERNAL_MODULE`, `NODE_TLS_REJECT_UNAUTHORIZED`, `NODE_USE_ENV_PROXY`, `NODE_V8_COVERAGE`, `NPM_CONFIG_*`, `PNPM_CONFIG_*`, `YARN_PLUGINS`, `YARN_RC_FILENAME`, `YARN_YARN_PATH`, `BUNDLE_GEMFILE`, `CARGO_BUILD_*`, `CARGO_HOME`, `CARGO_TARGET_*`, `CC`, `CLASSPATH`, `CORECLR_*`, `CXX`, `DOTNET_ADDITIONAL_DEPS`, `DOTNET_STARTUP_HOOKS`, `ERL_AFLAGS`, `ERL_FLAGS`, `ERL_LIBS`, `ERL_ZFLAGS`, `GEM_HOME`, `GEM_PATH`, `GNUMAKEFLAGS`, `GOENV`, `GOFLAGS`, `GRADLE_OPTS`, `JAVA_OPTS`, `JAVA_TOOL_OPTIONS`, `JDK_JAVA_OPTIONS`, `JULIA_DEPOT_PATH`, `JULIA_LOAD_PATH`, `LUA_CPATH*`, `LUA_INIT*`, `LUA_PATH*`, `MAKEFILES`, `MAKEFLAGS`, `MAVEN_ARGS`, `MAVEN_OPTS`, `PERL5*`, `PERLLIB`, `PHPRC`, `PHP_INI_SCAN_DIR`, `PIP_*`, `PYTHONBREAKPOINT`, `PYTHONEXECUTABLE`, `PYTHONHOME`, `PYTHONINSPECT`, `PYTHONPATH`, `PYTHONPLATLIBDIR`, `PYTHONPYCACHEPREFIX`, `PYTHONSTARTUP`, `PYTHONUSERBASE`, `PYTHONWARNINGS`, `RUBYLIB`, `RUBYOPT`, `RUSTC`, `RUSTC_*`, `R_ENVIRON*`, `R_LIBS*`, `R_PROFILE*`, `UV_CONFIG_FILE`, `_JAVA_OPTIONS`, `BROWSER`, `CURL_HOME`, `CVS_RSH`, `EDITOR`, `EXINIT`, `HGEDITOR`, `HGRCPATH`, `LESSCLOSE`, `LESSOPEN`, `MANPAGER`, `PAGER`, `RSYNC_RSH`, `SSH_ASKPASS*`, `SUDO_ASKPASS`, `SVN_EDITOR`, `SVN_SSH`, `TAR_OPTIONS`, `VIMINIT`, `VISUAL`, `WGETRC`, `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, `SSL_CERT_DIR`, `SSL_CERT_FILE`, `GIT_ALTERNATE_OBJECT_DIRECTORIES`, `GIT_ASKPASS`, `GIT_COMMON_DIR`, `GIT_CONFIG*`, `GIT_DIR`, `GIT_EDITOR`, `GIT_EXEC_PATH`, `GIT_EXTERNAL_DIFF`, `GIT_INDEX_FILE`, `GIT_OBJECT_DIRECTORY`, `GIT_PAGER`, `GIT_PROXY_COMMAND`, `GIT_SEQUENCE_EDITOR`, `GIT_SSH*`, `GIT_TEMPLATE_DIR`, `GIT_WORK_TREE`, `AGENTD_*`, `AGENTS_API_URL`, `AGENT_*`, `BERTH_*`, `OPENCLAW_*`, `USER_EMAIL`, `USER_NAME`.
         *
         *     Scope: `org:agents:write`.
         *
         *     Accepts a platform token with workspace scope.
         */
        post: operations["createSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/secrets/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change the value of a secret
         * @description Agents get the new value with their next restart; until then the secret is not `synced` in them.
         *
         *     Scope: `org:agents:write`.
         */
        put: operations["updateSecret"];
        post?: never;
        /**
         * Delete a secret that no agent uses
         * @description 409 while it is attached; `Error-Detail` names the agents.
         *
         *     Scope: `org:agents:write`.
         */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the secrets of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listAgentSecrets"];
        put?: never;
        /**
         * Attach secrets to an agent
         * @description All of them or none. The agent gets them with its next restart. The first credential of a model provider restarts it at once: then the response contains that `operation`, and its id is in `Operation-Id`.
         *
         *     **Conflicting secrets** (409): an agent can have one credential per provider. *alibaba*: `DASHSCOPE_API_KEY`, `MODELSTUDIO_API_KEY`, `QWEN_API_KEY`; *anthropic*: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_OAUTH_TOKEN`, `CLAUDE_CODE_OAUTH_TOKEN`; *chutes*: `CHUTES_API_KEY`, `CHUTES_OAUTH_TOKEN`; *comfy*: `COMFY_API_KEY`, `COMFY_CLOUD_API_KEY`; *elevenlabs*: `ELEVENLABS_API_KEY`, `XI_API_KEY`; *fal*: `FAL_API_KEY`, `FAL_KEY`; *fish-audio*: `FISH_API_KEY`, `FISH_AUDIO_API_KEY`; *google*: `GEMINI_API_KEY`, `GOOGLE_API_KEY`; *huggingface*: `HF_TOKEN`, `HUGGINGFACE_HUB_TOKEN`; *kimi*: `KIMICODE_API_KEY`, `KIMI_API_KEY`; *minimax*: `MINIMAX_API_KEY`, `MINIMAX_CODE_PLAN_KEY`, `MINIMAX_CODING_API_KEY`, `MINIMAX_OAUTH_TOKEN`; *openai*: `CODEX_ACCESS_TOKEN`, `CODEX_API_KEY`, `OPENAI_API_KEY`, `OPENAI_OAUTH_TOKEN`; *opencode*: `OPENCODE_API_KEY`, `OPENCODE_ZEN_API_KEY`; *runway*: `RUNWAYML_API_SECRET`, `RUNWAY_API_KEY`; *zai*: `ZAI_API_KEY`, `Z_AI_API_KEY`.
         *
         *     Scope: `org:agents:write`.
         *
         *     Accepts the agent’s own tokens only if `BERTH_PLATFORM_TOKEN_SCOPE` is `workspace`.
         */
        post: operations["attachSecrets"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/secrets/{secretId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Detach a secret from an agent
         * @description Its running gateway keeps the value until the next restart.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["detachSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/skills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills in the library
         * @description Newest first. If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listSkills"];
        put?: never;
        /**
         * Add a skill to the library
         * @description The content is a folder with SKILL.md, whose front matter has `name` and `description`; at most 500 files and 8 MiB, without links. It is read from the public network, or from the private one if it is a file of this workspace. Content that is not stored here is pinned first, as by `POST /v3/files/public/pin_by_cid` and under its conditions (scope `org:files:write`). If that takes longer than 25 seconds, the response is 202 with the pin’s operation; repeat the request when it has ended. Berth keeps the content as long as the skill.
         *
         *     For a CID that is already in the library, returns that skill unchanged. 409 if another skill has the name: add a version to it instead.
         *
         *     Scope: `org:agents:write`.
         */
        post: operations["addSkill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/skills/{skillId}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of a skill
         * @description Newest first; agents get the first one. The newest version is the highest release by Semantic Versioning, even if a lower one is published later. Prereleases count if there is no release, and versions without a number if no version has one. If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listSkillVersions"];
        put?: never;
        /**
         * Add a version to a skill
         * @description The content is a folder with SKILL.md, whose front matter has `name` and `description`; at most 500 files and 8 MiB, without links. It is read from the public network, or from the private one if it is a file of this workspace. Content that is not stored here is pinned first, as by `POST /v3/files/public/pin_by_cid` and under its conditions (scope `org:files:write`). If that takes longer than 25 seconds, the response is 202 with the pin’s operation; repeat the request when it has ended. Berth keeps the content as long as the skill.
         *
         *     The newest version is the highest release by Semantic Versioning, even if a lower one is published later. Prereleases count if there is no release, and versions without a number if no version has one. Agents that use the skill get it through an update. For a CID that the skill already has, returns that version. 409 if the version’s number is taken, or the content is another skill’s.
         *
         *     Scope: `org:agents:write`.
         */
        post: operations["addSkillVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/skills/{skillId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a skill from the library
         * @description Also deletes all its versions and releases their content. 409 while an agent uses it; `Error-Detail` names the agents. A skill that does not exist is not an error.
         *
         *     Scope: `org:agents:write`.
         */
        delete: operations["deleteSkill"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills of an agent
         * @description By name. In addition, every agent has `@berth/platform`, which it uses to talk to Berth.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         *
         *     Also at `/v0/agents/{agentId}/platform/skills/attached`.
         */
        get: operations["listAgentSkills"];
        put?: never;
        /**
         * Attach skills to an agent
         * @description All of them or none. Hub slugs that the library lacks are installed first, unless the agent itself asks. The folder appears below `skills`, and the engine sees it without a restart. 400 for more than 10 skills; 404 for a skill that is not in the library.
         *
         *     **Skill version conflict** (409): another version of the skill is attached, or the agent has created or changed a folder of that name. In the latter case the skill is attached, the folder stays, and `POST …/skills/{skillId}/update` with a `resolution` decides what happens to it. `skillProblems` in the agent’s status lists conflicts of other skills.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["attachSkills"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills/{skillId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Detach a skill from an agent
         * @description Deletes its folder, including the agent’s changes in it; the library keeps the skill.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["detachSkill"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills/updates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List newer versions of the skills of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listSkillUpdates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills/{skillId}/update": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give an agent another version of a skill
         * @description Without a body the agent gets the newest version in the library, but never a lower one than it has. To go back, name an older version.
         *
         *     **Skill version conflict** (409): `expectedSkillCid` is not the attached version, or the agent has changed the folder and `resolution` does not say what to do with it. Nothing changes then.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["updateSkill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/clawhub": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills of the hub
         * @description First the skills that ship with Berth and its operator’s, then, on further pages, those of the hub in the settings, in its order. Pass `nextCursor` as `cursor`; it is null on the last page.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listHub"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/clawhub/{slug}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a skill of the hub
         * @description Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         *
         *     Also at `/v0/clawhub/{+slug}`.
         */
        get: operations["getHubSkill"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/clawhub/{slug}/install": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Install a skill of the hub into the library
         * @description Stores its folder on the public network. An installed skill gets the hub’s version if that is new, and otherwise stays unchanged; agents get it through an update. 502 for a skill that is not safe to unpack.
         *
         *     Scope: `org:agents:write`.
         *
         *     Accepts a platform token with workspace scope.
         *
         *     Also at `/v0/clawhub/{+slug}/install`.
         */
        post: operations["installHubSkill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/gateway-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the gateway token of an agent
         * @description Its holder may do with the agent whatever a key with the scope may, except this, its rotation, deleting the agent and attaching secrets to it.
         *
         *     Scope: `org:agents:write`.
         *
         *     Does not accept the agent’s own tokens.
         */
        get: operations["getGatewayToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/gateway-token/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the gateway token of an agent
         * @description The old token, and the agent’s platform tokens minted with it, return 401 from now on, and their connections are closed. The agent restarts; the response does not wait for that, unless `Prefer` says so.
         *
         *     Scope: `org:agents:write`.
         *
         *     Does not accept the agent’s own tokens.
         */
        post: operations["rotateGatewayToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/platform/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a platform token
         * @description For an hour it works as a key for this agent; if the operator allows it, it can also see the rest of the workspace. It expires when the gateway token changes.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createPlatformToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/platform/whoami": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Identify the agent and the caller’s token
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["whoami"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the end of an agent's log
         * @description The last 100 lines of the gateway, the scripts and the supervisor. They outlive restarts of the gateway and the sandbox, but not a supervisor that is killed. On the agent's own host, a WebSocket at `/v0/logs` sends them and then each new line: `{"timestamp", "level", "source", "message"}`.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readAgentLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/logs/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow an agent's log, as server-sent events
         * @description Events `line`: the last lines, then each new one. A slow reader loses some lines, and learns how many. The stream ends with the sandbox; then read it again.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["followAgentLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List conversations
         * @description The latest 200 conversations that were started through these routes; the engine stores them.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listConversations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a conversation
         * @description Empty if nothing has been said yet.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readConversation"];
        put?: never;
        post?: never;
        /**
         * Delete a conversation
         * @description Also stops a reply in progress.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteConversation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say something to an agent, and follow its reply
         * @description The reply continues if the client disconnects. Events: `text` (`{"item", "text", "replace"}`) adds to what the agent writes. `message` is a stored message, as in the list. `tool` (`{"call", "state"}`) says that a tool call is `running`, `done` or `failed`, before its result is stored. `end` comes last, with `state` `done`, `stopped` or `failed` (and `error`, from the engine or its model’s provider). `error` (`{"error"}`, the reason) means that the stream ended before the reply: read the messages, and follow it again. The stream lasts as long as the reply; comments keep it open.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["sendMessage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the reply in progress
         * @description If the agent is not replying, `end` comes at once, with `state` `idle`. Events: `text` (`{"item", "text", "replace"}`) adds to what the agent writes. `message` is a stored message, as in the list. `tool` (`{"call", "state"}`) says that a tool call is `running`, `done` or `failed`, before its result is stored. `end` comes last, with `state` `done`, `stopped` or `failed` (and `error`, from the engine or its model’s provider). `error` (`{"error"}`, the reason) means that the stream ended before the reply: read the messages, and follow it again. The stream lasts as long as the reply; comments keep it open.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["followConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop the reply in progress
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["stopReply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/console/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command in an agent
         * @description A shell runs it as the agent, with the agent’s environment. An exit code other than 0 is a normal result. The command is killed when it runs too long, and when the client disconnects before it ends. Its background processes are killed with it, including `nohup … &`; `setsid … &` keeps running.
         *
         *     With `Accept: text/event-stream` the output arrives while it runs: events `stdout` and `stderr` (`{"text"}`), then `exit` (`{"exitCode", "truncated", "timedOut", "timestamp"}`), or `error` if the outcome is unknown.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["execCommand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a file
         * @description Returns its bytes verbatim, with the type that its name suggests. A browser downloads the file instead of running it. `ETag` contains its version. Use `/files/list` for folders.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readAgentFile"];
        /**
         * Write a file
         * @description The body is the content, at most `fileBytes` of `BERTH_AGENT_LIMITS`. It replaces an existing file completely or not at all, and creates missing folders. With `If-Match: <ETag>`, writes only if that is still the version; with `If-None-Match: *`, only if there is no file; otherwise 412.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["writeAgentFile"];
        post?: never;
        /**
         * Delete a file or a folder
         * @description A folder is deleted with its contents. Existing snapshots keep them.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteAgentFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/files/list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a folder
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listAgentFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/files/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a file
         * @description Stores it in `uploads` of the workspace, and replaces a file of that name completely or not at all.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["uploadAgentFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/git/info/refs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The first request of `git clone`, `git fetch` and `git push`
         * @description `git clone https://x:<gateway token>@<this host>/v0/agents/<agentId>.git`. A push also needs `org:agents:write`.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}.git/info/refs`.
         */
        get: operations["gitRefs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/git/git-upload-pack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send the objects that a clone or a fetch needs
         * @description Used by git itself.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}.git/git-upload-pack`.
         */
        post: operations["gitUploadPack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/git/git-receive-pack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Receive a push to `main`
         * @description Used by git itself. The agent’s own changes are committed first. A push is refused if it does not build on them, or if its `manifest.json` is invalid. Afterwards an operation `agent.push` applies the manifest and runs `build` and `start`.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}.git/git-receive-pack`.
         */
        post: operations["gitReceivePack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schemas/manifest.v1.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The JSON Schema of manifest.json
         * @description Pushes are validated against it. In addition, no two entries of a list may share a name, path or CID.
         */
        get: operations["manifestSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the engine's config
         * @description Returns text with its secrets redacted; writing it back keeps them. `ETag` contains its version.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readConfig"];
        /**
         * Write the engine's config
         * @description Replaces the config once the engine finds it valid; it survives restarts. Keys that belong to the operator are set again whatever the config says. With `If-Match: <ETag>`, writes only if that is still the version; otherwise 412. JSON5 comments are not kept.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["writeConfig"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config/operator-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the keys of the config that belong to the operator
         * @description Each start sets these keys again. Writing a config that changes one of them is refused.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listOperatorKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one key of the config's schema
         * @description The engine’s description of a key and of those directly below it, including those of plugins.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readConfigSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask the engine whether a config is valid
         * @description Checks the current config if the body has none.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["validateConfig"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/channels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List channels
         * @description Unconfigured channels are null. Tokens are never shown, except for their last characters.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listChannels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/channels/{channel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Configure a channel
         * @description `telegram`, `slack`, `discord` or `whatsapp`. Omitted fields stay unchanged, tokens included. The gateway restarts with the channel, which stays configured if that fails. A Telegram token is refused only if Telegram itself rejects it. 409 for a token that another agent uses.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["configureChannel"];
        /**
         * Remove a channel
         * @description Also removes its tokens. The gateway restarts; the channel is gone even if that fails.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["removeChannel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List devices
         * @description A client that presents its own key is a device, and has to be approved. A client that only has the gateway token is not a device.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listDevices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/devices/approve-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve all waiting devices
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["approveAllDevices"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/devices/{requestId}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a device
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["approveDevice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tasks
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listTasks"];
        put?: never;
        /**
         * Create a task
         * @description An agent has at most 20.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a task
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getTask"];
        /**
         * Change a task
         * @description Omitted fields stay unchanged.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["updateTask"];
        post?: never;
        /**
         * Delete a task
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteTask"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a task now
         * @description Runs in the background, whatever its schedule; `/runs` has the result.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["runTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}/toggle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Switch a task on or off
         * @description Without a body it is toggled.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["toggleTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the runs of a task
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listTaskRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List templates
         * @description First those that ship with Berth, then the workspace’s own, by slug. Templates of other workspaces are not included. If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page. `featured` selects those that ship with Berth; `submittedBy=me` selects those that the caller created.
         *
         *     Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listTemplates"];
        put?: never;
        /**
         * Create a template from an agent’s snapshot, or from a public repository
         * @description From a snapshot (`agentId`), or from the newest commit of a branch (`gitUrl`). The source contains `manifest.json`, `README.md` and `workspace/`. The manifest supplies fields that the body omits: its `template` has slug, category and tags, its `agent` name and description. Agents of this workspace can use the template at once. It contains all files of the source: remove anything first that others in the workspace must not see.
         *
         *     Reading a repository takes at most a minute, during which the client waits. Only one commit is read, without its history, submodules and LFS; at most 1000 files and 32 MiB, and no link that leads out of it. The repository has to be public, on https and on the internet. 400 explains why it cannot be read; 502 and 504, that its server failed or was too slow; 429, that too many are being read.
         *
         *     400 `Validation failed: …` names the first fault, and `Error-Detail` all of them. 409 if another template of the workspace, or one that ships with Berth, has the slug.
         *
         *     Scope: `org:agents:write`.
         *
         *     Accepts a platform token with workspace scope.
         */
        post: operations["createTemplate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/public-templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the templates that ship with Berth, without a key */
        get: operations["listPublicTemplates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/{templateId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a template by its slug
         * @description Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getTemplate"];
        /**
         * Change a template, or give it new files
         * @description With `agentId` (and `snapshotCid`) its files become those of that snapshot. With `gitUrl`, `branch`, `ref` or `path` they become those of that repository, and omitted fields keep their value. An empty body reads the template’s repository again. `version` grows with each change of files; existing agents stay unchanged. 403 for templates that ship with Berth.
         *
         *     Scope: `org:agents:write`.
         */
        put: operations["updateTemplate"];
        post?: never;
        /**
         * Archive a template
         * @description It is no longer found, and its slug is free; agents made from it keep running. It may be submitted again. 403 for templates that ship with Berth.
         *
         *     Scope: `org:agents:write`.
         */
        delete: operations["archiveTemplate"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/id/{templateId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a template by its id
         * @description Scope: `org:agents:read`.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getTemplateById"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check whether a snapshot or a public repository can be a template
         * @description `errors` lists every obstacle. Reading a repository takes at most a minute, during which the client waits. Only one commit is read, without its history, submodules and LFS; at most 1000 files and 32 MiB, and no link that leads out of it. The repository has to be public, on https and on the internet. 400 explains why it cannot be read; 502 and 504, that its server failed or was too slow; 429, that too many are being read.
         *
         *     Scope: `org:agents:read`.
         */
        post: operations["validateTemplate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/branches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List the branches of a public repository
         * @description Scope: `org:agents:read`.
         */
        post: operations["listTemplateBranches"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/refs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List the branches and tags of a public repository
         * @description Scope: `org:agents:read`.
         */
        post: operations["listTemplateRefs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the snapshots of an agent
         * @description Newest first. If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page. A reset adds its target snapshot again, so the first entry shows the workspace.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare two snapshots of an agent
         * @description The changes from `from` to `to`, whichever is older. The agent compares them in its repository, so it has to run; 409 if the repository no longer has one of them, for example after a restore.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["compareSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check whether snapshots are enabled, and when the last one was taken
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["getSyncStatus"];
        put?: never;
        /**
         * Save the workspace of an agent as a snapshot now
         * @description Commits the changes, and pins the commit’s tree on IPFS. `leftOut` lists files that are not in it: files that `.gitignore` excludes, that have the name or content of a key or the value of a secret, or that git cannot store. A line with a file’s exact path in `.gitignore`, such as `!/workspace/tests/key.pem`, includes a file that only looks like a key. Without changes there is no new snapshot. 503 if IPFS or the agent cannot be reached.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["syncAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset the workspace of an agent to a snapshot
         * @description Only to a snapshot of its own history. Saves the current workspace as a snapshot first; ignored files stay. Then `build` and `start` run; the gateway keeps running. 503 if IPFS or the agent is unreachable.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["resetAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/port-forwarding": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List path routes
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listPortForwarding"];
        /**
         * Replace all path routes
         * @description At most 10. Paths below `pathPrefix` of the agent’s own host go to `port`, without the prefix, which is sent in `X-Forwarded-Prefix`; the longest matching prefix wins. Because that host also serves the API, a port’s responses run in a sandbox there and set no cookies. Browsers that open a page are redirected to `<agentId>.<BERTH_APP_DOMAIN>`, which has the same routes and nothing else. `protected` requires the gateway token, in a header, `?token=` or a cookie.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["setPortForwarding"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the domains of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Accepts a platform token with workspace scope.
         */
        get: operations["listDomains"];
        put?: never;
        /**
         * Add a domain to an agent
         * @description Exactly one of `subdomain` and `customDomain`, at most 5 per agent. All paths, and WebSockets, go to `targetPort`.
         *
         *     A subdomain works at once; 409 if it is taken, or belonged to another workspace. A custom domain is `pending_ownership` until Berth sees its TXT record (`txtName`, `txtValue`): at once if it exists, through `verifyDomain`, or in automatic checks at growing intervals for two weeks. The first to prove a name gets it: 409 for others. A name must not contain or look like the service’s names, or be one of its hosts. The free plan has no custom domains.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["addDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains/challenge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get the TXT record that proves a custom domain
         * @description The same for all agents of the workspace, at any time: you can set it before you add the domain.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["getDomainChallenge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains/{domainId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change where a domain leads
         * @description The name stays: delete the domain and add another. Connections to the old target are closed.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["updateDomain"];
        post?: never;
        /**
         * Delete a domain
         * @description Closes connections through it. A subdomain stays with the workspace, whose agents may use it again; a custom domain becomes available to others.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteDomain"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains/{domainId}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check the TXT record of a custom domain now
         * @description 409 if somebody else has proven it before; 503 if no DNS server responds, in which case it stays pending.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["verifyDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/issues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Closed beta
         * @description Not available to any account: Berth has no issues.
         *
         *     Accepts any key.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        get: operations["getIssues"];
        /**
         * Closed beta
         * @description Not available to any account: Berth has no issues.
         *
         *     Accepts any key.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        put: operations["putIssues"];
        /**
         * Closed beta
         * @description Not available to any account: Berth has no issues.
         *
         *     Accepts any key.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        post: operations["postIssues"];
        /**
         * Closed beta
         * @description Not available to any account: Berth has no issues.
         *
         *     Accepts any key.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        delete: operations["deleteIssues"];
        options?: never;
        head?: never;
        /**
         * Closed beta
         * @description Not available to any account: Berth has no issues.
         *
         *     Accepts any key.
         *
         *     The agent’s own gateway token will do as well, for that agent’s own resources.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        patch: operations["patchIssues"];
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Chat with an agent through OpenAI’s Chat Completions API
         * @description The base URL of a client is `…/v0/agents/{agentId}/openai/v1`, and its API key is the gateway token of the agent or an API key of Berth. The engine’s own errors have OpenAI’s format: `{"error": {"message", "type"}}`.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createChatCompletion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Chat with an agent through OpenAI’s Responses API
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createResponse"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the models of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/models/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a model of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}/openai/v1/models/{+model}`.
         */
        get: operations["readModel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/ipfs/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the identity and addresses of the public IPFS node
         * @description If your own node is connected to one of `addresses`, Berth immediately finds the content that you ask it to pin.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["getIpfsNode"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check whether this process is alive */
        get: operations["live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check whether Berth can work, by component
         * @description 503 while `database`, `queue` or `schema` is down. Other unavailable components are shown as `down`; they delay work without losing it. The runtime of agents is shown as `docker`, `kubernetes` or `processes`, as seen by the workers that serve agents.
         */
        get: operations["ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get this API as an OpenAPI 3.1 document */
        get: operations["openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get this API as a web page */
        get: operations["docs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Redirect to the page */
        get: operations["root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            /** @description For people. */
            error: string;
        };
        PinningServiceError: {
            error: {
                /** @description For machines. */
                reason: string;
                /** @description For people. */
                details: string;
            };
        };
    };
    responses: {
        /** @description Something is missing or malformed; the message names the field. */
        400: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The API key is missing, unknown, expired, revoked or without a user. */
        401: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key lacks the scope, its user lacks the role, or its workspace’s plan does not include it. */
        403: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The workspace has no such resource. */
        404: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body did not arrive in time. */
        408: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The resource is in a state that does not allow this, or the name is taken. */
        409: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The resource existed, but no longer does. */
        410: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `If-Match` or `If-None-Match` fails, or the client speaks another version of tus than 1.0.0. */
        412: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is too large. */
        413: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body has a type, encoding or charset that this route does not accept. */
        415: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The Idempotency-Key belongs to another request. */
        422: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Another request is working on the resource. */
        423: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many requests in a minute, or too much work at a time. */
        429: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The URL or the headers are larger than 16 KiB. The response has no body. */
        431: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description An internal error; the log has the cause. */
        500: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description An agent or a remote server sent an invalid response. */
        502: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A required component is unavailable, or has no room on its disk. Nothing that was accepted is lost. */
        503: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description An agent or a remote server did not respond in time. */
        504: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A disk is down to its reserve: nothing new is accepted until there is room. Existing content is served and can be deleted. */
        507: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Any error under `/psa`: `reason` is the `Error-Code` in upper case. */
        PinningService: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "reason": "NOT_FOUND",
                 *         "details": "There is no such pin request"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PinningServiceError"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /**
         * @description A machine-readable error code.
         * @example bad_request
         */
        "Error-Code": string;
        /**
         * @description Details of the error, if the message itself is fixed.
         * @example exit code 78
         */
        "Error-Detail": string;
        /**
         * @description Where to follow the operation.
         * @example /v0/operations/0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41
         */
        Location: string;
        /**
         * @description The operation that this request started or found.
         * @example 0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41
         */
        "Operation-Id": string;
        /**
         * @description Requests per minute that the plan allows the key, or its workspace if that is nearer to its limit; absent if the plan has no limit.
         * @example 250
         */
        "RateLimit-Limit": number;
        /**
         * @description Requests left in this minute.
         * @example 249
         */
        "RateLimit-Remaining": number;
        /**
         * @description Seconds until the count resets.
         * @example 60
         */
        "RateLimit-Reset": number;
        /**
         * @description Seconds after which to retry.
         * @example 5
         */
        "Retry-After": number;
        /**
         * @description How to authenticate.
         * @example Bearer
         */
        "WWW-Authenticate": string;
        /**
         * @description The id of this request in the log.
         * @example f2c9b1d04a6e47d38a55c0e19b7d6a01
         */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    streamEvents: {
        parameters: {
            query?: {
                /** @description Only events of these types, comma separated; `file.*` matches all file events. */
                type?: string[];
                /** @description Only events of this resource; `agent:<id>` includes events of everything that belongs to the agent. */
                resource?: string;
                /** @description Same as `Last-Event-ID`, for clients that cannot send the header. */
                after?: number;
                /** @description Begin with events published at or after this time, as far as they are kept. `Last-Event-ID` and `after` take precedence. */
                from?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, each named after its type. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: group.created
                     *     data: {"id":"1816211578880123","type":"group.created","createdAt":"2026-11-21T10:58:03.485Z","workspaceId":"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9","resource":{"type":"group","id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7"},"data":{}}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            410: components["responses"]["410"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPinByCid: {
        parameters: {
            query?: {
                /** @description Only requests with this status. */
                status?: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node";
                /** @description Only this CID, in any spelling. */
                cid?: string;
                /** @description `ASC` or `DESC` by age; default: newest first. */
                order?: "ASC" | "DESC";
                /** @description The same as `order`. */
                sort?: "ASC" | "DESC";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
                /** @description Adds `count`, the number of all matches. */
                includesCount?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of pin records. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "jobs": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "Spring catalogue",
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "keyvalues": {
                     *               "season": "spring"
                     *             },
                     *             "group_id": null,
                     *             "status": "prechecking",
                     *             "date_queued": "2026-11-21T10:58:03.485Z",
                     *             "hose_nodes": [],
                     *             "host_nodes": []
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            jobs: {
                                id: string;
                                name: string | null;
                                cid: string;
                                keyvalues: {
                                    [key: string]: string;
                                };
                                group_id: string | null;
                                /** @enum {string} */
                                status: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node" | "pinned";
                                date_queued: string;
                                hose_nodes: string[];
                                host_nodes: string[];
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                            count?: number;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    pinByCid: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "Spring catalogue"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin: any version, any multibase.
                     */
                    cid: string;
                    /** @description A name for the file. */
                    name?: string | null;
                    /** @description The group to place the file in. */
                    group_id?: string | null;
                    /** @description Metadata: at most 10 pairs of strings. */
                    keyvalues?: {
                        [key: string]: string;
                    } | null;
                    /** @description Nodes that have the content: peer ids, or multiaddrs that end in /p2p/<peer id>. */
                    host_nodes?: string[] | null;
                };
            };
        };
        responses: {
            /** @description The pin record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Spring catalogue",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "status": "prechecking",
                     *         "date_queued": "2026-11-21T10:58:03.485Z",
                     *         "hose_nodes": [],
                     *         "host_nodes": []
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            /** @enum {string} */
                            status: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node" | "pinned";
                            date_queued: string;
                            hose_nodes: string[];
                            host_nodes: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    cancelPinByCid: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Withdrawn. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    retryPinByCid: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pin record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Spring catalogue",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "status": "prechecking",
                     *         "date_queued": "2026-11-21T10:58:03.485Z",
                     *         "hose_nodes": [],
                     *         "host_nodes": []
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            /** @enum {string} */
                            status: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node" | "pinned";
                            date_queued: string;
                            hose_nodes: string[];
                            host_nodes: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    psaListPins: {
        parameters: {
            query?: {
                /** @description Only these CIDs, at most 10, separated by commas, in any spelling. */
                cid?: string;
                /** @description Only pins with this name. */
                name?: string;
                /** @description How `name` is compared: whole or partial, case-sensitive or (`i`) case-insensitive. */
                match?: "exact" | "iexact" | "partial" | "ipartial";
                /** @description Only pins in these statuses, separated by commas. Default: only `pinned` ones; with `name`, also those that are queued or being pinned. */
                status?: string;
                /** @description Only pins created before this; use `created` of the last pin to get the next page. */
                before?: string;
                /** @description Only pins created after this. */
                after?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description Metadata as a JSON object; all pairs must match. */
                meta?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of pins. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 1,
                     *       "results": [
                     *         {
                     *           "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "status": "queued",
                     *           "created": "2026-11-21T10:58:03.485Z",
                     *           "pin": {
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "origins": [
                     *               "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *             ],
                     *             "meta": {
                     *               "season": "spring"
                     *             }
                     *           },
                     *           "delegates": [],
                     *           "info": {}
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description How many pins match in total, on this page and the following ones. */
                        count: number;
                        results: {
                            /** @description The id of the file. */
                            requestid: string;
                            /** @enum {string} */
                            status: "queued" | "pinning" | "pinned" | "failed";
                            /** @description When it was requested, with milliseconds. Lists are ordered and paginated by it. */
                            created: string;
                            pin: {
                                cid: string;
                                name?: string;
                                origins: string[];
                                meta: {
                                    [key: string]: string;
                                };
                            };
                            /** @description Addresses of the IPFS node to connect to; none while it cannot be dialled. */
                            delegates: string[];
                            /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                            info: {
                                [key: string]: string;
                            };
                        }[];
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
        };
    };
    psaAddPin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "Spring catalogue"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin: any version, any multibase.
                     */
                    cid: string;
                    /** @description A name to find it by. */
                    name?: string | null;
                    /** @description Multiaddrs of nodes that have the content. The first 20 that can be dialled are kept; the others are ignored. */
                    origins?: string[] | null;
                    /** @description Metadata: at most 10 pairs of strings. */
                    meta?: {
                        [key: string]: string;
                    } | null;
                };
            };
        };
        responses: {
            /** @description The pin. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "status": "queued",
                     *       "created": "2026-11-21T10:58:03.485Z",
                     *       "pin": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "origins": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "meta": {
                     *           "season": "spring"
                     *         }
                     *       },
                     *       "delegates": [],
                     *       "info": {}
                     *     }
                     */
                    "application/json": {
                        /** @description The id of the file. */
                        requestid: string;
                        /** @enum {string} */
                        status: "queued" | "pinning" | "pinned" | "failed";
                        /** @description When it was requested, with milliseconds. Lists are ordered and paginated by it. */
                        created: string;
                        pin: {
                            cid: string;
                            name?: string;
                            origins: string[];
                            meta: {
                                [key: string]: string;
                            };
                        };
                        /** @description Addresses of the IPFS node to connect to; none while it cannot be dialled. */
                        delegates: string[];
                        /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                        info: {
                            [key: string]: string;
                        };
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            408: components["responses"]["PinningService"];
            409: components["responses"]["PinningService"];
            413: components["responses"]["PinningService"];
            415: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
            507: components["responses"]["PinningService"];
        };
    };
    psaGetPin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the pin request, a UUID. */
                requestid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pin. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "status": "queued",
                     *       "created": "2026-11-21T10:58:03.485Z",
                     *       "pin": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "origins": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "meta": {
                     *           "season": "spring"
                     *         }
                     *       },
                     *       "delegates": [],
                     *       "info": {}
                     *     }
                     */
                    "application/json": {
                        /** @description The id of the file. */
                        requestid: string;
                        /** @enum {string} */
                        status: "queued" | "pinning" | "pinned" | "failed";
                        /** @description When it was requested, with milliseconds. Lists are ordered and paginated by it. */
                        created: string;
                        pin: {
                            cid: string;
                            name?: string;
                            origins: string[];
                            meta: {
                                [key: string]: string;
                            };
                        };
                        /** @description Addresses of the IPFS node to connect to; none while it cannot be dialled. */
                        delegates: string[];
                        /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                        info: {
                            [key: string]: string;
                        };
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            404: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
        };
    };
    psaReplacePin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the pin request, a UUID. */
                requestid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "Spring catalogue"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin: any version, any multibase.
                     */
                    cid: string;
                    /** @description A name to find it by. */
                    name?: string | null;
                    /** @description Multiaddrs of nodes that have the content. The first 20 that can be dialled are kept; the others are ignored. */
                    origins?: string[] | null;
                    /** @description Metadata: at most 10 pairs of strings. */
                    meta?: {
                        [key: string]: string;
                    } | null;
                };
            };
        };
        responses: {
            /** @description The new pin. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "status": "queued",
                     *       "created": "2026-11-21T10:58:03.485Z",
                     *       "pin": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "origins": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "meta": {
                     *           "season": "spring"
                     *         }
                     *       },
                     *       "delegates": [],
                     *       "info": {}
                     *     }
                     */
                    "application/json": {
                        /** @description The id of the file. */
                        requestid: string;
                        /** @enum {string} */
                        status: "queued" | "pinning" | "pinned" | "failed";
                        /** @description When it was requested, with milliseconds. Lists are ordered and paginated by it. */
                        created: string;
                        pin: {
                            cid: string;
                            name?: string;
                            origins: string[];
                            meta: {
                                [key: string]: string;
                            };
                        };
                        /** @description Addresses of the IPFS node to connect to; none while it cannot be dialled. */
                        delegates: string[];
                        /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                        info: {
                            [key: string]: string;
                        };
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            404: components["responses"]["PinningService"];
            408: components["responses"]["PinningService"];
            409: components["responses"]["PinningService"];
            413: components["responses"]["PinningService"];
            415: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
            507: components["responses"]["PinningService"];
        };
    };
    psaRemovePin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the pin request, a UUID. */
                requestid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            404: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
        };
    };
    uploadFile: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": [
                 *         "<bytes>"
                 *       ]
                 *     }
                 */
                "multipart/form-data": {
                    /** @description The file, or several files with paths as file names, which form a folder. If all of them are in one folder, the upload is that folder. */
                    file: string | string[];
                    /**
                     * @description Default: `private`.
                     * @default private
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /** @description Default: the name of the file or folder. */
                    name?: string;
                    /** Format: uuid */
                    group_id?: string;
                    /**
                     * Format: uuid
                     * @description The same as `group_id`.
                     */
                    group?: string;
                    /**
                     * Format: json-pairs
                     * @description Metadata: a JSON object of strings, at most ten pairs.
                     */
                    keyvalues?: string;
                    /**
                     * @description `true`: the file is a CAR, and the upload is the DAG of its single root.
                     * @enum {string}
                     */
                    car?: "true" | "false";
                    /**
                     * @description Default: `v1`.
                     * @enum {string}
                     */
                    cid_version?: "0" | "1" | "v0" | "v1";
                    /**
                     * Format: unix-time
                     * @description When to delete the file, as Unix time in seconds. Default: never.
                     */
                    expires_at?: string;
                    /**
                     * @description Accepted, without effect: every file can be streamed.
                     * @enum {string}
                     */
                    streamable?: "true" | "false";
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "logo.png",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "size": 17408,
                     *         "number_of_files": 1,
                     *         "mime_type": "image/png",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "expires_at": null,
                     *         "vectorized": false,
                     *         "network": "public",
                     *         "is_duplicate": false,
                     *         "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it will be deleted, as Unix time in seconds; null for never. */
                            expires_at: number | null;
                            /** @constant */
                            vectorized: false;
                            /** @enum {string} */
                            network: "public" | "private";
                            /** @description Whether the workspace already had this content, until `expires_at` or longer. If so, this is the existing file, of which only `mime_type` changes if this upload declares a better type. */
                            is_duplicate: boolean;
                            user_id: string;
                        };
                    };
                };
            };
            /** @description Send the bytes to `Location`. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    resumableUploadOptions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `Tus-Version`, `Tus-Extension`, and the CORS headers. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    pinFileToIPFS: {
        parameters: {
            query?: {
                /** @description Default: the network in the form, or else `public`. */
                network?: "public" | "private";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": [
                 *         "<bytes>"
                 *       ]
                 *     }
                 */
                "multipart/form-data": {
                    /** @description The file, or several files with paths as file names, which form a folder. If all of them are in one folder, the upload is that folder. */
                    file: string | string[];
                    /**
                     * @description Default: `public`.
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /**
                     * Format: json-metadata
                     * @description JSON: `{"name": …, "keyvalues": {…}}`.
                     */
                    pinataMetadata?: string;
                    /**
                     * Format: json-options
                     * @description JSON: `{"groupId": …, "cidVersion": 0 or 1, "wrapWithDirectory": true or false}`.
                     */
                    pinataOptions?: string;
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ID": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "Name": "logo.png",
                     *       "IpfsHash": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "PinSize": 17408,
                     *       "Timestamp": "2026-11-21T10:58:03.485Z",
                     *       "NumberOfFiles": 1,
                     *       "MimeType": "image/png",
                     *       "GroupId": null,
                     *       "Keyvalues": {
                     *         "season": "spring"
                     *       },
                     *       "isDuplicate": false
                     *     }
                     */
                    "application/json": {
                        ID: string;
                        Name: string | null;
                        IpfsHash: string;
                        /** @description Bytes of the content. */
                        PinSize: number;
                        Timestamp: string;
                        NumberOfFiles: number;
                        MimeType: string;
                        GroupId: string | null;
                        Keyvalues: {
                            [key: string]: string;
                        };
                        isDuplicate: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    pinJSONToIPFS: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "pinataContent": {
                 *         "name": "Token 1"
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description Any JSON. */
                    pinataContent?: unknown;
                    pinataMetadata?: {
                        name?: string | null;
                        keyvalues?: {
                            [key: string]: string;
                        } | null;
                    } | null;
                    pinataOptions?: {
                        groupId?: string | null;
                        cidVersion?: ((0 | 1) | ("0" | "1")) | null;
                        /** @description The upload becomes the entry of a directory, and `IpfsHash` is the directory’s. */
                        wrapWithDirectory?: boolean | null;
                        /** @description Accepted, without effect: Berth keeps one copy. */
                        customPinPolicy?: unknown;
                    } | null;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ID": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "Name": "logo.png",
                     *       "IpfsHash": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "PinSize": 17408,
                     *       "Timestamp": "2026-11-21T10:58:03.485Z",
                     *       "NumberOfFiles": 1,
                     *       "MimeType": "image/png",
                     *       "GroupId": null,
                     *       "Keyvalues": {
                     *         "season": "spring"
                     *       },
                     *       "isDuplicate": false
                     *     }
                     */
                    "application/json": {
                        ID: string;
                        Name: string | null;
                        IpfsHash: string;
                        /** @description Bytes of the content. */
                        PinSize: number;
                        Timestamp: string;
                        NumberOfFiles: number;
                        MimeType: string;
                        GroupId: string | null;
                        Keyvalues: {
                            [key: string]: string;
                        };
                        isDuplicate: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    signUpload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "expires": 60,
                 *       "network": "public",
                 *       "max_file_size": 5000000,
                 *       "allow_mime_types": [
                 *         "image/*"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Start of validity, as Unix time in seconds. Default: now. */
                    date?: number;
                    /** @description For how many seconds after `date` it is valid. */
                    expires: number;
                    /**
                     * Format: private-file
                     * @description A private file's URL: `https://<gateway>/files/<cid>`, optionally with a path or query that gateways support.
                     */
                    url?: string;
                    /**
                     * @description The HTTP method that the link allows.
                     * @constant
                     */
                    method?: "GET";
                    /**
                     * @description The network of every file that is uploaded through the URL.
                     * @default private
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /** @description Maximum bytes of an upload. */
                    max_file_size?: number | null;
                    /** @description The types that may be uploaded, with optional wildcards; `directory` for folders. */
                    allow_mime_types?: string[] | null;
                    /** @description The group of the uploaded files. If omitted, the upload may name one. */
                    group_id?: string | null;
                    /** @description The name of the uploaded file; overrides the upload’s. */
                    filename?: string | null;
                    /** @description Metadata of the uploaded file; overrides the upload’s. */
                    keyvalues?: {
                        [key: string]: string;
                    } | null;
                    /** @description Accepted, without effect: every file can be streamed. */
                    streamable?: boolean;
                };
            };
        };
        responses: {
            /** @description The signed URL. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=60&X-Method=GET&X-Signature=…"
                     *     }
                     */
                    "application/json": {
                        /** @description The signed URL. */
                        data: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    signDownload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "expires": 60,
                 *       "method": "GET"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: private-file
                     * @description A private file's URL: `https://<gateway>/files/<cid>`, optionally with a path or query that gateways support.
                     */
                    url: string;
                    /** @description Start of validity, as Unix time in seconds. Default: now. */
                    date?: number;
                    /** @description For how many seconds after `date` it is valid. */
                    expires: number;
                    /**
                     * @description The HTTP method that the link allows.
                     * @constant
                     */
                    method: "GET";
                };
            };
        };
        responses: {
            /** @description The signed URL. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=60&X-Method=GET&X-Signature=…"
                     *     }
                     */
                    "application/json": {
                        /** @description The signed URL. */
                        data: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    linkToFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signed URL. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=60&X-Method=GET&X-Signature=…"
                     *     }
                     */
                    "application/json": {
                        /** @description The signed URL. */
                        data: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listFiles: {
        parameters: {
            query?: {
                /** @description Part of the name, case-insensitive. Without three letters or digits in a row, it matches only the beginning of names. */
                name?: string;
                /** @description A group id, or `null` for files in no group. */
                group?: "null" | string;
                /**
                 * @description Only this media type.
                 * @example image/png
                 */
                mimeType?: string;
                /** @description Only this CID, in any spelling. */
                cid?: string;
                /** @description `true`: only files that still wait for a CID; there are none. */
                cidPending?: "true" | "false";
                /**
                 * @description `keyvalues[<key>]=<value>`: all pairs must match.
                 * @example {
                 *       "season": "spring"
                 *     }
                 */
                keyvalues?: {
                    [key: string]: string;
                };
                /**
                 * @description The same as `keyvalues`.
                 * @example {
                 *       "season": "spring"
                 *     }
                 */
                metadata?: {
                    [key: string]: string;
                };
                /** @description `ASC` or `DESC` by age. */
                order?: "ASC" | "DESC";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of files. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "files": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "logo.png",
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "size": 17408,
                     *             "number_of_files": 1,
                     *             "mime_type": "image/png",
                     *             "keyvalues": {
                     *               "season": "spring"
                     *             },
                     *             "group_id": null,
                     *             "created_at": "2026-11-21T10:58:03.485Z",
                     *             "expires_at": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            files: {
                                id: string;
                                name: string | null;
                                cid: string;
                                /** @description Bytes of the content. */
                                size: number;
                                number_of_files: number;
                                mime_type: string;
                                keyvalues: {
                                    [key: string]: string;
                                };
                                group_id: string | null;
                                created_at: string;
                                /** @description When it will be deleted, as Unix time in seconds; null for never. */
                                expires_at: number | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    uploadBySignedUrl: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id in the URL. */
                network: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": [
                 *         "<bytes>"
                 *       ]
                 *     }
                 */
                "multipart/form-data": {
                    /** @description The file, or several files with paths as file names, which form a folder. If all of them are in one folder, the upload is that folder. */
                    file: string | string[];
                    /**
                     * @description Default: `private`.
                     * @default private
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /** @description Default: the name of the file or folder. */
                    name?: string;
                    /** Format: uuid */
                    group_id?: string;
                    /**
                     * Format: uuid
                     * @description The same as `group_id`.
                     */
                    group?: string;
                    /**
                     * Format: json-pairs
                     * @description Metadata: a JSON object of strings, at most ten pairs.
                     */
                    keyvalues?: string;
                    /**
                     * @description `true`: the file is a CAR, and the upload is the DAG of its single root.
                     * @enum {string}
                     */
                    car?: "true" | "false";
                    /**
                     * @description Default: `v1`.
                     * @enum {string}
                     */
                    cid_version?: "0" | "1" | "v0" | "v1";
                    /**
                     * Format: unix-time
                     * @description When to delete the file, as Unix time in seconds. Default: never.
                     */
                    expires_at?: string;
                    /**
                     * @description Accepted, without effect: every file can be streamed.
                     * @enum {string}
                     */
                    streamable?: "true" | "false";
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "logo.png",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "size": 17408,
                     *         "number_of_files": 1,
                     *         "mime_type": "image/png",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "expires_at": null,
                     *         "vectorized": false,
                     *         "network": "public",
                     *         "is_duplicate": false,
                     *         "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it will be deleted, as Unix time in seconds; null for never. */
                            expires_at: number | null;
                            /** @constant */
                            vectorized: false;
                            /** @enum {string} */
                            network: "public" | "private";
                            /** @description Whether the workspace already had this content, until `expires_at` or longer. If so, this is the existing file, of which only `mime_type` changes if this upload declares a better type. */
                            is_duplicate: boolean;
                            user_id: string;
                        };
                    };
                };
            };
            /** @description Send the bytes to `Location`. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    terminateUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The token at the end of `Location`: anyone who knows it may send bytes. */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its bytes are deleted. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            410: components["responses"]["410"];
            412: components["responses"]["412"];
            423: components["responses"]["423"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    describeUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The token at the end of `Location`: anyone who knows it may send bytes. */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many bytes have arrived, and the total. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            410: components["responses"]["410"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            423: components["responses"]["423"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    appendToUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The token at the end of `Location`: anyone who knows it may send bytes. */
                token: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example <bytes> */
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description The bytes are stored; `Upload-Offset` is their number. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            410: components["responses"]["410"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            423: components["responses"]["423"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    getFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "logo.png",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "size": 17408,
                     *         "number_of_files": 1,
                     *         "mime_type": "image/png",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "expires_at": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it will be deleted, as Unix time in seconds; null for never. */
                            expires_at: number | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "keyvalues": {
                 *         "season": "spring"
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description `null` or empty: no name. */
                    name?: string | null;
                    /** @description Merged by key into the existing pairs, 10 at most; `null` removes a pair. */
                    keyvalues?: {
                        [key: string]: string | null;
                    };
                    /** @description When to delete it, to within minutes: a Unix time in seconds. `null`: never. */
                    expires_at?: number | null;
                } | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The updated file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "logo.png",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "size": 17408,
                     *         "number_of_files": 1,
                     *         "mime_type": "image/png",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "expires_at": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it will be deleted, as Unix time in seconds; null for never. */
                            expires_at: number | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteFile: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    pinByHash: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "hashToPin": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin.
                     */
                    hashToPin: string;
                    pinataMetadata?: {
                        name?: string | null;
                        keyvalues?: {
                            [key: string]: string;
                        } | null;
                    } | null;
                    pinataOptions?: {
                        groupId?: string | null;
                        hostNodes?: string[] | null;
                        /** @description Accepted, without effect: Berth keeps one copy. */
                        customPinPolicy?: unknown;
                        /** @description Accepted, without effect. */
                        pinPolicy?: unknown;
                    } | null;
                };
            };
        };
        responses: {
            /** @description The pin request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "ipfsHash": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "status": "prechecking",
                     *       "name": "token 1"
                     *     }
                     */
                    "application/json": {
                        id: string;
                        ipfsHash: string;
                        status: string;
                        name: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    pinList: {
        parameters: {
            query?: {
                /** @description Default: `public`. */
                network?: "public" | "private";
                /** @description Part of the CID. */
                hashContains?: string;
                /** @description Only files of this group. */
                groupId?: string;
                /** @description Pinned at this time or later. */
                pinStart?: string;
                /** @description Pinned at this time or earlier. */
                pinEnd?: string;
                /** @description Files of at least this many bytes. */
                pinSizeMin?: number;
                /** @description Files of at most this many bytes. */
                pinSizeMax?: number;
                /** @description Only requests with this status. */
                status?: "all" | "pinned" | "unpinned";
                /**
                 * @description `metadata[name]`: part of the name. `metadata[keyvalues]`: JSON, `{"<key>": {"value": …, "op": "eq"}}`.
                 * @example {
                 *       "season": "spring"
                 *     }
                 */
                metadata?: {
                    name?: string;
                    /** Format: json-pairs */
                    keyvalues?: string;
                };
                /** @description Adds `count`. */
                includeCount?: "true" | "false";
                /** @description The number of files per page. */
                pageLimit?: number;
                /** @description How many files to skip. */
                pageOffset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of files. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "rows": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "ipfs_pin_hash": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "size": 104,
                     *           "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "date_pinned": "2026-11-21T10:58:03.485Z",
                     *           "date_unpinned": null,
                     *           "metadata": {
                     *             "name": null,
                     *             "keyvalues": {
                     *               "season": "spring"
                     *             }
                     *           },
                     *           "regions": [
                     *             {}
                     *           ],
                     *           "mime_type": "application/json",
                     *           "number_of_files": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description The number of all matches; omitted with `includeCount=false`. */
                        count?: number;
                        rows: {
                            id: string;
                            ipfs_pin_hash: string;
                            size: number;
                            user_id: string | null;
                            date_pinned: string;
                            date_unpinned: null;
                            metadata: {
                                name: string | null;
                                keyvalues: {
                                    [key: string]: string;
                                };
                            };
                            /** @description Empty: Berth keeps one copy. */
                            regions: Record<string, never>[];
                            mime_type: string;
                            number_of_files: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    unpin: {
        parameters: {
            query?: {
                /** @description Default: `public`. */
                network?: "public" | "private";
            };
            header?: never;
            path: {
                /** @description The CID. */
                hash: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `OK` */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example OK */
                    "text/plain": "OK";
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description A folder inside it, such as `images/small`. */
                path?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "entries": [
                     *           {
                     *             "name": "cover.png",
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "type": "file",
                     *             "size": 0
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            entries: {
                                /** @description Percent-escaped if it is not UTF-8. */
                                name: string;
                                cid: string;
                                /**
                                 * @description `other`: a link, or content that is not a UnixFS file.
                                 * @enum {string}
                                 */
                                type: "file" | "directory" | "other";
                                /** @description The size of a file in bytes. For other entries, the size stated by the folder, including the overhead of the DAG. */
                                size: number;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getFileDetails: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The details. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "signature": {
                     *           "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd9",
                     *           "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                     *         },
                     *         "swaps": [
                     *           {
                     *             "mapped_cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "created_at": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Null if the content is not signed. */
                            signature: {
                                /** @description The CID as requested. */
                                cid: string;
                                signature: string;
                                /** @description The wallet that signed, according to its owner. */
                                address: string;
                            } | null;
                            /** @description Newest first, up to 1000. Empty if the CID was never swapped, or no gateway of the workspace has the hot swaps plugin. */
                            swaps: {
                                /** @description The CID that it was swapped to; null if the swap was removed. */
                                mapped_cid: string | null;
                                /** @description UTC, with microseconds. */
                                created_at: string;
                            }[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listGroups: {
        parameters: {
            query?: {
                /** @description Part of the name, case-insensitive. */
                name?: string;
                /** @description Only public groups, or only others. */
                isPublic?: "true" | "false";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of groups, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "groups": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "Catalogues",
                     *             "is_public": false,
                     *             "created_at": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            groups: {
                                id: string;
                                name: string;
                                is_public: boolean;
                                created_at: string;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Catalogues"
                 *     }
                 */
                "application/json": {
                    name: string;
                    /** @default false */
                    is_public?: boolean;
                };
            };
        };
        responses: {
            /** @description The group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Catalogues",
                     *         "is_public": false,
                     *         "created_at": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            is_public: boolean;
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Catalogues",
                     *         "is_public": false,
                     *         "created_at": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            is_public: boolean;
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Catalogues"
                 *     }
                 */
                "application/json": {
                    name?: string;
                    is_public?: boolean;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The updated group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Catalogues",
                     *         "is_public": false,
                     *         "created_at": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            is_public: boolean;
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addFileToGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the file, a UUID. */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file is in the group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removeFileFromGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the file, a UUID. */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file is not in the group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapHistory: {
        parameters: {
            query: {
                /**
                 * @description A gateway with the hot swaps plugin: its host, with or without port, or its left label.
                 * @example catalogues
                 */
                domain: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The original CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1000 entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "mapped_cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "created_at": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The CID that it was swapped to; null if the swap was removed. */
                            mapped_cid: string | null;
                            /** @description UTC, with microseconds. */
                            created_at: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapCid: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The original CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "swap_cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to serve from now on: a file of the same network.
                     */
                    swap_cid?: string;
                    /**
                     * Format: cid
                     * @description The same as `swap_cid`.
                     */
                    swapCid?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The entry in force. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "mapped_cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "created_at": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The CID that it was swapped to; null if the swap was removed. */
                            mapped_cid: string | null;
                            /** @description UTC, with microseconds. */
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSwap: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The original CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapHistoryOlder: {
        parameters: {
            query: {
                /**
                 * @description A gateway with the hot swaps plugin: its host, with or without port, or its left label.
                 * @example catalogues
                 */
                domain: string;
            };
            header?: never;
            path: {
                /** @description The original CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1000 entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "mappedCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "createdAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            mappedCid: string | null;
                            createdAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapCidOlder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The original CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "swap_cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to serve from now on: a file of the same network.
                     */
                    swap_cid?: string;
                    /**
                     * Format: cid
                     * @description The same as `swap_cid`.
                     */
                    swapCid?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The entry in force. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "mappedCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "createdAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            mappedCid: string | null;
                            createdAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSwapOlder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The original CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getSignature: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signature. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd9",
                     *         "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The CID as requested. */
                            cid: string;
                            signature: string;
                            /** @description The wallet that signed, according to its owner. */
                            address: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addSignature: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd9",
                 *       "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                 *     }
                 */
                "application/json": {
                    signature: string;
                    address: string;
                };
            };
        };
        responses: {
            /** @description The signature. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd91ba6c2a8412dc9b0be37b013ea5bddd9",
                     *         "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The CID as requested. */
                            cid: string;
                            signature: string;
                            /** @description The wallet that signed, according to its owner. */
                            address: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSignature: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The CID, in any spelling. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPlugins: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Each plugin with the gateway that has it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "gateway_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "plugin_id": 2
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            gateway_id: string;
                            plugin_id: number;
                        }[];
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listOfferedPlugins: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plugins. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": 2,
                     *           "name": "Hot Swaps",
                     *           "description": "Serves newer content under the address of a CID that was given away before.",
                     *           "tags": [
                     *             "files"
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: number;
                            name: string;
                            description: string;
                            tags: string[];
                        }[];
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getOfferedPlugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The number of the plugin: 2 is hot swaps.
                 * @example 2
                 */
                plugin_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plugin. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": 2,
                     *         "name": "Hot Swaps",
                     *         "description": "Serves newer content under the address of a CID that was given away before.",
                     *         "tags": [
                     *           "files"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: number;
                            name: string;
                            description: string;
                            tags: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listGatewayPlugins: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the gateway, a UUID. */
                gateway_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its plugins. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "gateway_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "plugin_id": 2
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            gateway_id: string;
                            plugin_id: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    installPlugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the gateway, a UUID. */
                gateway_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plugin_id": 2
                 *     }
                 */
                "application/json": {
                    plugin_id: number;
                };
            };
        };
        responses: {
            /** @description The gateway has the plugin, now or already before. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "gateway_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "plugin_id": 2
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            gateway_id: string;
                            plugin_id: number;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removePlugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the gateway, a UUID. */
                gateway_id: string;
                /**
                 * @description The number of the plugin: 2 is hot swaps.
                 * @example 2
                 */
                plugin_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listGateways: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All gateways of the workspace, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "count": 1,
                     *         "rows": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "created_at": "2026-11-21T10:58:03.485Z",
                     *             "domain": "catalogues",
                     *             "host": "catalogues.gateway.localhost",
                     *             "restrict": false,
                     *             "custom_domains": [
                     *               {
                     *                 "domain": "files.example.com",
                     *                 "domain_validation_status": "pending",
                     *                 "custom_domain_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *                 "ssl_validation_status": "initializing",
                     *                 "txt_name": null,
                     *                 "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *                 "cname_target": "catalogues.gateway.localhost"
                     *               }
                     *             ]
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            count: number;
                            rows: {
                                id: string;
                                created_at: string;
                                /** @description The left label of its host. */
                                domain: string;
                                /** @description Its host; the scheme and port are the API’s. */
                                host: string;
                                /** @description Whether it has access tokens, so that reading public content requires one of them. */
                                restrict: boolean;
                                custom_domains: {
                                    domain: string;
                                    /**
                                     * @description `active` once its TXT record was seen; from then on it serves the gateway.
                                     * @enum {string}
                                     */
                                    domain_validation_status: "pending" | "active";
                                    custom_domain_id: string;
                                    /**
                                     * @description Same value: the TLS proxy manages certificates, and may get one for an active domain.
                                     * @enum {string}
                                     */
                                    ssl_validation_status: "initializing" | "active";
                                    /** @description Name of the TXT record that is still missing; null once the domain is active. */
                                    txt_name: string | null;
                                    /** @description Its value. */
                                    txt_value: string | null;
                                    /** @description Target for a CNAME record of the domain. */
                                    cname_target: string;
                                }[];
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createGateway: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "domain": "catalogues"
                 *     }
                 */
                "application/json": {
                    /** Format: gateway-name */
                    domain: string;
                };
            };
        };
        responses: {
            /** @description The gateway. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "domain": "catalogues",
                     *         "host": "catalogues.gateway.localhost",
                     *         "restrict": false,
                     *         "custom_domains": [
                     *           {
                     *             "domain": "files.example.com",
                     *             "domain_validation_status": "pending",
                     *             "custom_domain_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "ssl_validation_status": "initializing",
                     *             "txt_name": null,
                     *             "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *             "cname_target": "catalogues.gateway.localhost"
                     *           }
                     *         ],
                     *         "inner_cids": false,
                     *         "cid_hosts": false,
                     *         "settings": {
                     *           "restriction_policies": {
                     *             "accessTokens": [
                     *               {
                     *                 "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *                 "value": "q3V0bGU4c2hpcHMgZG9jayBhdCB0aGUgYmVydGggYXQgZGF3biBldmVyeSBkYXk",
                     *                 "createdAt": "2026-11-21T10:58:03.485Z"
                     *               }
                     *             ],
                     *             "allowedHosts": [],
                     *             "allowedIPAddresses": []
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            created_at: string;
                            /** @description The left label of its host. */
                            domain: string;
                            /** @description Its host; the scheme and port are the API’s. */
                            host: string;
                            /** @description Whether it has access tokens, so that reading public content requires one of them. */
                            restrict: boolean;
                            custom_domains: {
                                domain: string;
                                /**
                                 * @description `active` once its TXT record was seen; from then on it serves the gateway.
                                 * @enum {string}
                                 */
                                domain_validation_status: "pending" | "active";
                                custom_domain_id: string;
                                /**
                                 * @description Same value: the TLS proxy manages certificates, and may get one for an active domain.
                                 * @enum {string}
                                 */
                                ssl_validation_status: "initializing" | "active";
                                /** @description Name of the TXT record that is still missing; null once the domain is active. */
                                txt_name: string | null;
                                /** @description Its value. */
                                txt_value: string | null;
                                /** @description Target for a CNAME record of the domain. */
                                cname_target: string;
                            }[];
                            /** @description Also serves content inside the workspace’s public files by its own CID. */
                            inner_cids: boolean;
                            /** @description Redirects public content from its path to the CID’s own host, which is a separate origin. */
                            cid_hosts: boolean;
                            settings: {
                                restriction_policies: {
                                    accessTokens: {
                                        id: string;
                                        /** @description The token. It is shown only once, and empty in all other responses. */
                                        value: string;
                                        createdAt: string;
                                    }[];
                                    /** @description Always empty. */
                                    allowedHosts: unknown[];
                                    /** @description Always empty. */
                                    allowedIPAddresses: unknown[];
                                };
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    gatewayExists: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name of a gateway: the left label of its host.
                 * @example catalogues
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether any workspace has a gateway with this name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "exists": true
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            exists: boolean;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getGateway: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gateway. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "domain": "catalogues",
                     *         "host": "catalogues.gateway.localhost",
                     *         "restrict": false,
                     *         "custom_domains": [
                     *           {
                     *             "domain": "files.example.com",
                     *             "domain_validation_status": "pending",
                     *             "custom_domain_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "ssl_validation_status": "initializing",
                     *             "txt_name": null,
                     *             "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *             "cname_target": "catalogues.gateway.localhost"
                     *           }
                     *         ],
                     *         "inner_cids": false,
                     *         "cid_hosts": false,
                     *         "settings": {
                     *           "restriction_policies": {
                     *             "accessTokens": [
                     *               {
                     *                 "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *                 "value": "q3V0bGU4c2hpcHMgZG9jayBhdCB0aGUgYmVydGggYXQgZGF3biBldmVyeSBkYXk",
                     *                 "createdAt": "2026-11-21T10:58:03.485Z"
                     *               }
                     *             ],
                     *             "allowedHosts": [],
                     *             "allowedIPAddresses": []
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            created_at: string;
                            /** @description The left label of its host. */
                            domain: string;
                            /** @description Its host; the scheme and port are the API’s. */
                            host: string;
                            /** @description Whether it has access tokens, so that reading public content requires one of them. */
                            restrict: boolean;
                            custom_domains: {
                                domain: string;
                                /**
                                 * @description `active` once its TXT record was seen; from then on it serves the gateway.
                                 * @enum {string}
                                 */
                                domain_validation_status: "pending" | "active";
                                custom_domain_id: string;
                                /**
                                 * @description Same value: the TLS proxy manages certificates, and may get one for an active domain.
                                 * @enum {string}
                                 */
                                ssl_validation_status: "initializing" | "active";
                                /** @description Name of the TXT record that is still missing; null once the domain is active. */
                                txt_name: string | null;
                                /** @description Its value. */
                                txt_value: string | null;
                                /** @description Target for a CNAME record of the domain. */
                                cname_target: string;
                            }[];
                            /** @description Also serves content inside the workspace’s public files by its own CID. */
                            inner_cids: boolean;
                            /** @description Redirects public content from its path to the CID’s own host, which is a separate origin. */
                            cid_hosts: boolean;
                            settings: {
                                restriction_policies: {
                                    accessTokens: {
                                        id: string;
                                        /** @description The token. It is shown only once, and empty in all other responses. */
                                        value: string;
                                        createdAt: string;
                                    }[];
                                    /** @description Always empty. */
                                    allowedHosts: unknown[];
                                    /** @description Always empty. */
                                    allowedIPAddresses: unknown[];
                                };
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGateway: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeGatewayServing: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "inner_cids": true
                 *     }
                 */
                "application/json": {
                    /** @description Also serves content inside the workspace’s public files by its own CID. */
                    inner_cids?: boolean;
                    /** @description Redirects public content from its path to the CID’s own host, which is a separate origin. */
                    cid_hosts?: boolean;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "inner_cids": false,
                     *         "cid_hosts": false
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Also serves content inside the workspace’s public files by its own CID. */
                            inner_cids: boolean;
                            /** @description Redirects public content from its path to the CID’s own host, which is a separate origin. */
                            cid_hosts: boolean;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createGatewayToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token. It is shown only once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "value": "q3V0bGU4c2hpcHMgZG9jayBhdCB0aGUgYmVydGggYXQgZGF3biBldmVyeSBkYXk",
                     *         "createdAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @description The token. It is shown only once, and empty in all other responses. */
                            value: string;
                            createdAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGatewayToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the access token, a UUID. */
                item_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "domain": "files.example.com"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: domain-name
                     * @description Your own domain, such as `files.example.com`.
                     */
                    domain?: string;
                    /**
                     * Format: domain-name
                     * @description The same.
                     */
                    custom_domain?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "domain": "files.example.com",
                     *         "domain_validation_status": "pending",
                     *         "custom_domain_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "ssl_validation_status": "initializing",
                     *         "txt_name": null,
                     *         "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *         "cname_target": "catalogues.gateway.localhost"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            domain: string;
                            /**
                             * @description `active` once its TXT record was seen; from then on it serves the gateway.
                             * @enum {string}
                             */
                            domain_validation_status: "pending" | "active";
                            custom_domain_id: string;
                            /**
                             * @description Same value: the TLS proxy manages certificates, and may get one for an active domain.
                             * @enum {string}
                             */
                            ssl_validation_status: "initializing" | "active";
                            /** @description Name of the TXT record that is still missing; null once the domain is active. */
                            txt_name: string | null;
                            /** @description Its value. */
                            txt_value: string | null;
                            /** @description Target for a CNAME record of the domain. */
                            cname_target: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the domain, a UUID. */
                custom_domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "domain": "files.example.com",
                     *         "domain_validation_status": "pending",
                     *         "custom_domain_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "ssl_validation_status": "initializing",
                     *         "txt_name": null,
                     *         "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *         "cname_target": "catalogues.gateway.localhost"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            domain: string;
                            /**
                             * @description `active` once its TXT record was seen; from then on it serves the gateway.
                             * @enum {string}
                             */
                            domain_validation_status: "pending" | "active";
                            custom_domain_id: string;
                            /**
                             * @description Same value: the TLS proxy manages certificates, and may get one for an active domain.
                             * @enum {string}
                             */
                            ssl_validation_status: "initializing" | "active";
                            /** @description Name of the TXT record that is still missing; null once the domain is active. */
                            txt_name: string | null;
                            /** @description Its value. */
                            txt_value: string | null;
                            /** @description Target for a CNAME record of the domain. */
                            cname_target: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the domain, a UUID. */
                custom_domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    verifyGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the domain, a UUID. */
                custom_domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "domain": "files.example.com",
                     *         "domain_validation_status": "pending",
                     *         "custom_domain_id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "ssl_validation_status": "initializing",
                     *         "txt_name": null,
                     *         "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *         "cname_target": "catalogues.gateway.localhost"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            domain: string;
                            /**
                             * @description `active` once its TXT record was seen; from then on it serves the gateway.
                             * @enum {string}
                             */
                            domain_validation_status: "pending" | "active";
                            custom_domain_id: string;
                            /**
                             * @description Same value: the TLS proxy manages certificates, and may get one for an active domain.
                             * @enum {string}
                             */
                            ssl_validation_status: "initializing" | "active";
                            /** @description Name of the TXT record that is still missing; null once the domain is active. */
                            txt_name: string | null;
                            /** @description Its value. */
                            txt_value: string | null;
                            /** @description Target for a CNAME record of the domain. */
                            cname_target: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    topAnalytics: {
        parameters: {
            query: {
                /** @description A gateway of the workspace: its host, or its left label. */
                gateway_domain: string;
                /** @description The first day, in UTC. Default: the first day that is kept. */
                start_date?: string;
                /** @description The last day. Default: today. */
                end_date?: string;
                /** @description Only requests for this CID, however it is spelled. */
                cid?: string;
                /** @description Only requests for files with this name. */
                file_name?: string;
                /** @description Only requests from this user agent. */
                user_agent?: string;
                /** @description Only requests referred by pages of this origin. */
                referer?: string;
                /** @description The same as `referer`. */
                referrer?: string;
                /** @description Requests are not counted by country: the result is empty. */
                country?: string;
                /** @description Requests are not counted by region: the result is empty. */
                region?: string;
                /** @description Only requests with this response status; 499 means that the response was cut short. */
                http_status_code?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description Sort order: `asc` lists the smallest or earliest first, `desc` the largest or latest. */
                sort_order?: "asc" | "desc";
                /** @description The value to group by. */
                by: "cid" | "file_name" | "user_agent" | "referer" | "referrer" | "country" | "region";
                /** @description The number to sort by. */
                sort_by?: "requests" | "bandwidth";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Totals of the days, greatest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "value": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "requests": 1341,
                     *           "bandwidth": 287310699
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            value: string;
                            requests: number;
                            /** @description Bytes sent, headers included. */
                            bandwidth: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    analyticsTimeSeries: {
        parameters: {
            query: {
                /** @description A gateway of the workspace: its host, or its left label. */
                gateway_domain: string;
                /** @description The first day, in UTC. Default: the first day that is kept. */
                start_date?: string;
                /** @description The last day. Default: today. */
                end_date?: string;
                /** @description Only requests for this CID, however it is spelled. */
                cid?: string;
                /** @description Only requests for files with this name. */
                file_name?: string;
                /** @description Only requests from this user agent. */
                user_agent?: string;
                /** @description Only requests referred by pages of this origin. */
                referer?: string;
                /** @description The same as `referer`. */
                referrer?: string;
                /** @description Requests are not counted by country: the result is empty. */
                country?: string;
                /** @description Requests are not counted by region: the result is empty. */
                region?: string;
                /** @description Only requests with this response status; 499 means that the response was cut short. */
                http_status_code?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description Sort order: `asc` lists the smallest or earliest first, `desc` the largest or latest. */
                sort_order?: "asc" | "desc";
                /** @description Default: `day`. */
                date_interval?: "day" | "week";
                /** @description The same as `date_interval`. */
                by?: "day" | "week";
                /** @description Default: by time, newest first. */
                sort_by?: "requests" | "bandwidth";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The periods, and the totals of all periods, including those beyond `limit`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "total_requests": 209,
                     *         "total_bandwidth": 131151812,
                     *         "time_periods": [
                     *           {
                     *             "period_start_time": "2026-11-22",
                     *             "requests": 1341,
                     *             "bandwidth": 287310699
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            total_requests: number;
                            total_bandwidth: number;
                            time_periods: {
                                /** @description The day, or the Monday of the week. */
                                period_start_time: string;
                                requests: number;
                                /** @description Bytes sent, headers included. */
                                bandwidth: number;
                            }[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    testAuthentication: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is valid, regardless of its scopes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "message": "Congratulations! You are communicating with the Pinata API!"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        message: "Congratulations! You are communicating with the Pinata API!";
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getPinnedTotal: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The totals. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "pin_count": 128,
                     *       "pin_size_total": 734003200,
                     *       "pin_size_with_replications_total": 734003200
                     *     }
                     */
                    "application/json": {
                        pin_count: number;
                        /** @description Bytes of content. */
                        pin_size_total: number;
                        /** @description Same value: Berth keeps one copy. */
                        pin_size_with_replications_total: number;
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Both networks together. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "plan": "pro",
                     *         "files": 128,
                     *         "bytes": 734003200,
                     *         "limit_bytes": 1099511627776,
                     *         "max_file_bytes": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            plan: string;
                            files: number;
                            bytes: number;
                            /** @description The plan’s total storage; null for no limit. */
                            limit_bytes: number | null;
                            /** @description The plan’s limit for one file; null for no limit. */
                            max_file_bytes: number | null;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description Only revoked keys, or only others. */
                revoked?: "true" | "false";
                /** @description Only keys with a limited number of uses, or only those without. */
                limitedUse?: "true" | "false";
                /** @description Only keys with no uses left, or only those with some. */
                exhausted?: "true" | "false";
                /** @description Part of the name, case-insensitive. */
                name?: string;
                /** @description How many items to skip. */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 100 keys, newest first, and how many match. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "name": "website",
                     *           "key": "5f0c2b7be1d94a30a7e6",
                     *           "secret": "",
                     *           "max_uses": null,
                     *           "uses": 0,
                     *           "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "scopes": {
                     *             "admin": false,
                     *             "resources": [
                     *               "org:files:read",
                     *               "org:groups:read"
                     *             ],
                     *             "endpoints": {
                     *               "data": {},
                     *               "pinning": {}
                     *             }
                     *           },
                     *           "revoked": false,
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ],
                     *       "count": 1
                     *     }
                     */
                    "application/json": {
                        keys: {
                            id: string;
                            name: string;
                            key: string;
                            /** @description Always empty: a secret is shown once, when its key is created. */
                            secret: string;
                            max_uses: number | null;
                            uses: number;
                            user_id: string | null;
                            /** @description Same format as `permissions` of a new key. */
                            scopes: {
                                admin: boolean;
                                resources: string[];
                                /** @description What the key may do, as switches. */
                                endpoints: {
                                    data: {
                                        [key: string]: boolean;
                                    };
                                    pinning: {
                                        [key: string]: boolean;
                                    };
                                };
                            };
                            revoked: boolean;
                            createdAt: string;
                            updatedAt: string;
                        }[];
                        count: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "keyName": "website",
                 *       "permissions": {
                 *         "resources": [
                 *           "org:files:read",
                 *           "org:groups:read"
                 *         ]
                 *       }
                 *     }
                 */
                "application/json": {
                    keyName: string;
                    permissions: {
                        admin?: boolean;
                        resources?: ("admin" | "org:read" | "org:write" | "org:files:read" | "org:files:write" | "org:groups:read" | "org:groups:write" | "org:gateways:read" | "org:gateways:write" | "org:analytics:read" | "org:analytics:write" | "org:agents:read" | "org:agents:write" | "org:private_files:write" | "instance:read" | "instance:write")[];
                        endpoints?: {
                            data?: {
                                [key: string]: boolean;
                            };
                            pinning?: {
                                [key: string]: boolean;
                            };
                        };
                    };
                    maxUses?: number;
                    /** @description Default: the key expires with the key that creates it. */
                    expiresInHours?: number;
                };
            };
        };
        responses: {
            /** @description The key. It is shown only once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl",
                     *       "pinata_api_key": "5f0c2b7be1d94a30a7e6",
                     *       "pinata_api_secret": "c1f0e2d3a4b5968778695a4b3c2d1e0f"
                     *     }
                     */
                    "application/json": {
                        JWT: string;
                        pinata_api_key: string;
                        pinata_api_secret: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's public half, or its id. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is revoked, effective immediately. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example Revoked */
                    "application/json": "Revoked";
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's public half, or its id. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is revoked, effective immediately. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example Revoked */
                    "application/json": "Revoked";
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listWorkspaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workspaces": [
                     *           {
                     *             "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "name": "catalogues",
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "plan": {
                     *               "name": "pro",
                     *               "agentLimit": null,
                     *               "secretLimit": null,
                     *               "channels": true,
                     *               "customDomains": true,
                     *               "pinByCid": true,
                     *               "hotSwaps": true,
                     *               "maxFileBytes": null,
                     *               "storageBytes": null,
                     *               "requestsPerMinute": null,
                     *               "agentDiskMb": null,
                     *               "modelUsdPerMonth": null,
                     *               "modelTokensPerMonth": null
                     *             },
                     *             "role": "owner",
                     *             "usage": {
                     *               "files": 128,
                     *               "bytes": 734003200
                     *             }
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workspaces: {
                                id: string;
                                name: string;
                                createdAt: string;
                                /** @description What the plan allows; `null` means no limit. */
                                plan: {
                                    name: string;
                                    agentLimit: number | null;
                                    secretLimit: number | null;
                                    channels: boolean;
                                    customDomains: boolean;
                                    pinByCid: boolean;
                                    hotSwaps: boolean;
                                    maxFileBytes: number | null;
                                    storageBytes: number | null;
                                    requestsPerMinute: number | null;
                                    /** @description `null` means the setting `diskMb` of `BERTH_AGENT_LIMITS`. */
                                    agentDiskMb: number | null;
                                    /** @description US dollars that the agents of a workspace may spend on models in a month, in UTC. */
                                    modelUsdPerMonth: string | null;
                                    /** @description The same in tokens. */
                                    modelTokensPerMonth: number | null;
                                };
                                /**
                                 * @description The role of the key’s user.
                                 * @enum {string}
                                 */
                                role: "owner" | "member" | "viewer";
                                /** @description Its files on both networks. */
                                usage: {
                                    files: number;
                                    bytes: number;
                                };
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "plan": {
                     *           "name": "pro",
                     *           "agentLimit": null,
                     *           "secretLimit": null,
                     *           "channels": true,
                     *           "customDomains": true,
                     *           "pinByCid": true,
                     *           "hotSwaps": true,
                     *           "maxFileBytes": null,
                     *           "storageBytes": null,
                     *           "requestsPerMinute": null,
                     *           "agentDiskMb": null,
                     *           "modelUsdPerMonth": null,
                     *           "modelTokensPerMonth": null
                     *         },
                     *         "role": "owner",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            createdAt: string;
                            /** @description What the plan allows; `null` means no limit. */
                            plan: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` means the setting `diskMb` of `BERTH_AGENT_LIMITS`. */
                                agentDiskMb: number | null;
                                /** @description US dollars that the agents of a workspace may spend on models in a month, in UTC. */
                                modelUsdPerMonth: string | null;
                                /** @description The same in tokens. */
                                modelTokensPerMonth: number | null;
                            };
                            /**
                             * @description The role of the key’s user.
                             * @enum {string}
                             */
                            role: "owner" | "member" | "viewer";
                            /** @description Its files on both networks. */
                            usage: {
                                files: number;
                                bytes: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    renameWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "catalogues"
                 *     }
                 */
                "application/json": {
                    name: string;
                };
            };
        };
        responses: {
            /** @description The updated workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "plan": {
                     *           "name": "pro",
                     *           "agentLimit": null,
                     *           "secretLimit": null,
                     *           "channels": true,
                     *           "customDomains": true,
                     *           "pinByCid": true,
                     *           "hotSwaps": true,
                     *           "maxFileBytes": null,
                     *           "storageBytes": null,
                     *           "requestsPerMinute": null,
                     *           "agentDiskMb": null,
                     *           "modelUsdPerMonth": null,
                     *           "modelTokensPerMonth": null
                     *         },
                     *         "role": "owner",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            createdAt: string;
                            /** @description What the plan allows; `null` means no limit. */
                            plan: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` means the setting `diskMb` of `BERTH_AGENT_LIMITS`. */
                                agentDiskMb: number | null;
                                /** @description US dollars that the agents of a workspace may spend on models in a month, in UTC. */
                                modelUsdPerMonth: string | null;
                                /** @description The same in tokens. */
                                modelTokensPerMonth: number | null;
                            };
                            /**
                             * @description The role of the key’s user.
                             * @enum {string}
                             */
                            role: "owner" | "member" | "viewer";
                            /** @description Its files on both networks. */
                            usage: {
                                files: number;
                                bytes: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listMembers: {
        parameters: {
            query?: {
                /** @description Only members with this role. */
                role?: "owner" | "member" | "viewer";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of members, the longest-standing users first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "members": [
                     *           {
                     *             "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *             "name": "Ada",
                     *             "role": "member"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            members: {
                                id: string;
                                name: string;
                                /** @enum {string} */
                                role: "owner" | "member" | "viewer";
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removeMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
                /** @description The id of the user, a UUID. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
                /** @description The id of the user, a UUID. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "member"
                 *     }
                 */
                "application/json": {
                    /** @enum {string} */
                    role: "owner" | "member" | "viewer";
                };
            };
        };
        responses: {
            /** @description The member. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Ada",
                     *         "role": "member"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listInvitations: {
        parameters: {
            query?: {
                /** @description Only invitations in this state. */
                state?: "pending" | "accepted" | "revoked" | "expired";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of invitations, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "invitations": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "role": "member",
                     *             "email": "ada@example.com",
                     *             "state": "pending",
                     *             "invitedBy": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *             "acceptedBy": null,
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "expiresAt": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            invitations: {
                                id: string;
                                /** @enum {string} */
                                role: "owner" | "member" | "viewer";
                                email: string | null;
                                /** @enum {string} */
                                state: "pending" | "accepted" | "revoked" | "expired";
                                /** @description The id of the user. */
                                invitedBy: string;
                                /** @description The id of the user who accepted it. */
                                acceptedBy: string | null;
                                createdAt: string;
                                expiresAt: string;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "member"
                 *     }
                 */
                "application/json": {
                    /** @enum {string} */
                    role: "owner" | "member" | "viewer";
                    /** @description A note of the recipient. Berth sends no mail: pass the token on yourself. */
                    email?: string;
                    /** @default 168 */
                    expiresInHours?: number;
                };
            };
        };
        responses: {
            /** @description The invitation, with its token. It is shown only once. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "role": "member",
                     *         "email": "ada@example.com",
                     *         "state": "pending",
                     *         "invitedBy": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "acceptedBy": null,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z",
                     *         "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                            email: string | null;
                            /** @enum {string} */
                            state: "pending" | "accepted" | "revoked" | "expired";
                            /** @description The id of the user. */
                            invitedBy: string;
                            /** @description The id of the user who accepted it. */
                            acceptedBy: string | null;
                            createdAt: string;
                            expiresAt: string;
                            token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
                /** @description The id of the invitation, a UUID. */
                invitationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The invitation can no longer be accepted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    acceptInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT",
                 *       "name": "Ada"
                 *     }
                 */
                "application/json": {
                    token: string;
                    name: string;
                };
            };
        };
        responses: {
            /** @description The new member. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workspace": {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "name": "reading room"
                     *         },
                     *         "user": {
                     *           "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "Ada"
                     *         },
                     *         "role": "member",
                     *         "token": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workspace: {
                                id: string;
                                name: string;
                            };
                            user: {
                                id: string;
                                name: string;
                            };
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                            /** @description An API key of the new member, with `admin`, or `org:read` for a viewer. It is shown only once. */
                            token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    listWorkspaceKeys: {
        parameters: {
            query?: {
                /** @description Part of the name, case-insensitive. */
                name?: string;
                /** @description Only revoked keys, or only others. */
                revoked?: "true" | "false";
                /** @description Only keys of this user. */
                userId?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of keys, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "keys": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "website",
                     *             "publicKey": "5f0c2b7be1d94a30a7e6",
                     *             "user": {
                     *               "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *               "name": "Ada"
                     *             },
                     *             "scopes": [
                     *               "org:files:read",
                     *               "org:groups:read"
                     *             ],
                     *             "maxUses": null,
                     *             "uses": 0,
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "expiresAt": null,
                     *             "revokedAt": null,
                     *             "lastUsedAt": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            keys: {
                                id: string;
                                name: string;
                                publicKey: string;
                                /** @description The user it acts for; null if it acts for no user. */
                                user: {
                                    id: string;
                                    name: string;
                                } | null;
                                scopes: string[];
                                maxUses: number | null;
                                /** @description Counted only if uses are limited. */
                                uses: number;
                                createdAt: string;
                                expiresAt: string | null;
                                revokedAt: string | null;
                                /** @description To the minute; null if the key was never used. */
                                lastUsedAt: string | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeWorkspaceKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key’s workspace, a UUID. Any other id returns 404. */
                workspaceId: string;
                /** @description The id of the key, a UUID. */
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is revoked, effective immediately. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    waysToSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The ways. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "passkey": true,
                     *         "oidc": {
                     *           "name": "Ada"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Whether browsers can use passkeys at this address. */
                            passkey: boolean;
                            /** @description The OpenID provider, if one is set. */
                            oidc: {
                                name: string;
                            } | null;
                        };
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "login_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT"
                 *     }
                 */
                "application/json": {
                    token: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    loginByInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT",
                 *       "name": "Ada"
                 *     }
                 */
                "application/json": {
                    token: string;
                    name: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    logout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    whoAmI: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "user": {
                     *           "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "Ada"
                     *         },
                     *         "workspace": {
                     *           "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *           "name": "catalogues"
                     *         },
                     *         "role": "owner",
                     *         "scopes": [
                     *           "admin",
                     *           "instance:write"
                     *         ],
                     *         "isInstanceAdmin": true,
                     *         "plan": {
                     *           "name": "pro",
                     *           "agentLimit": null,
                     *           "secretLimit": null,
                     *           "channels": true,
                     *           "customDomains": true,
                     *           "pinByCid": true,
                     *           "hotSwaps": true,
                     *           "maxFileBytes": null,
                     *           "storageBytes": null,
                     *           "requestsPerMinute": null,
                     *           "agentDiskMb": null,
                     *           "modelUsdPerMonth": null,
                     *           "modelTokensPerMonth": null
                     *         },
                     *         "session": {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "expiresAt": "2026-11-21T10:58:03.485Z"
                     *         },
                     *         "workspaces": [
                     *           {
                     *             "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "name": "catalogues",
                     *             "role": "owner"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            user: {
                                id: string;
                                name: string;
                            };
                            workspace: {
                                id: string;
                                name: string;
                            };
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                            scopes: string[];
                            isInstanceAdmin: boolean;
                            /** @description What the plan allows; `null` means no limit. */
                            plan: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` means the setting `diskMb` of `BERTH_AGENT_LIMITS`. */
                                agentDiskMb: number | null;
                                /** @description US dollars that the agents of a workspace may spend on models in a month, in UTC. */
                                modelUsdPerMonth: string | null;
                                /** @description The same in tokens. */
                                modelTokensPerMonth: number | null;
                            };
                            /** @description Null for a key. */
                            session: {
                                id: string;
                                expiresAt: string;
                            } | null;
                            /** @description The workspaces in which the user is a member, by name, 1000 at most. Null for a key, which belongs to one workspace. */
                            workspaces: {
                                id: string;
                                name: string;
                                /** @enum {string} */
                                role: "owner" | "member" | "viewer";
                            }[] | null;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sessions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "sessions": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "userAgent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/146.0",
                     *             "current": true,
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "lastUsedAt": "2026-11-21T10:58:03.485Z",
                     *             "expiresAt": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            sessions: {
                                id: string;
                                /** @description The browser’s user agent at the sign-in. */
                                userAgent: string | null;
                                /** @description Whether this is the session of the request. */
                                current: boolean;
                                createdAt: string;
                                /** @description To the minute. */
                                lastUsedAt: string | null;
                                expiresAt: string;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    moveSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "workspaceId": "0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5"
                 *     }
                 */
                "application/json": {
                    /** Format: uuid */
                    workspaceId: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    joinWithSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT"
                 *     }
                 */
                "application/json": {
                    token: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the session, a UUID. */
                sessionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginPasskeyLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "challenge": "VZk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYr"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            challenge: string;
                        } & {
                            [key: string]: unknown;
                        };
                    };
                };
            };
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    loginWithPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "credential": {
                 *         "id": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "rawId": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "type": "public-key",
                 *         "response": {
                 *           "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi4oCmIn0",
                 *           "authenticatorData": "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MdAAAAAg",
                 *           "signature": "MEUCIQDx3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrAiBk",
                 *           "userHandle": "AZOhsEQQf26NJ8BbnmGj8g"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    credential: {
                        id: string;
                        rawId: string;
                        /** @constant */
                        type: "public-key";
                        response: {
                            clientDataJSON: string;
                            authenticatorData: string;
                            signature: string;
                            userHandle: string;
                        };
                        /** @default {} */
                        clientExtensionResults?: Record<string, never>;
                    };
                    /**
                     * Format: uuid
                     * @description Where to sign in, for a user of several workspaces. Default: the workspace of their newest session, or else the one they joined first.
                     */
                    workspaceId?: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    listPasskeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The passkeys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "passkeys": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "Laptop",
                     *             "synced": true,
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "lastUsedAt": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            passkeys: {
                                id: string;
                                name: string;
                                /** @description Whether the device syncs it to the owner’s other devices. */
                                synced: boolean;
                                createdAt: string;
                                lastUsedAt: string | null;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Laptop",
                 *       "credential": {
                 *         "id": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "rawId": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "type": "public-key",
                 *         "response": {
                 *           "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi4oCmIn0",
                 *           "attestationObject": "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVik"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    name: string;
                    credential: {
                        id: string;
                        rawId: string;
                        /** @constant */
                        type: "public-key";
                        response: {
                            clientDataJSON: string;
                            attestationObject: string;
                            transports?: string[];
                        };
                        /** @default {} */
                        clientExtensionResults?: Record<string, never>;
                    };
                };
            };
        };
        responses: {
            /** @description The passkey. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Laptop",
                     *         "synced": true,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "lastUsedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            /** @description Whether the device syncs it to the owner’s other devices. */
                            synced: boolean;
                            createdAt: string;
                            lastUsedAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "challenge": "VZk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYr"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            challenge: string;
                        } & {
                            [key: string]: unknown;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deletePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the passkey, a UUID. */
                passkeyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    renamePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the passkey, a UUID. */
                passkeyId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Laptop"
                 *     }
                 */
                "application/json": {
                    name: string;
                };
            };
        };
        responses: {
            /** @description The renamed passkey. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Laptop",
                     *         "synced": true,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "lastUsedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            /** @description Whether the device syncs it to the owner’s other devices. */
                            synced: boolean;
                            createdAt: string;
                            lastUsedAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginOidcLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example {} */
                "application/json": {
                    /**
                     * Format: uuid
                     * @description Where to sign in, for a user of several workspaces. Default: the workspace of their newest session, or else the one they joined first.
                     */
                    workspaceId?: string;
                    /** @description The token of an invitation, which the sign-in accepts. */
                    invitation?: string;
                };
            };
        };
        responses: {
            /** @description Where to go. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "url": "https://id.example.com/auth?client_id=berth&response_type=code&state=login.x1"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The provider’s sign-in page. */
                            url: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    loginWithOidc: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "query": "code=Kq3vRzA2yq0o&state=login.x1&iss=https%3A%2F%2Fid.example.com"
                 *     }
                 */
                "application/json": {
                    /** @description The query string of the URL to which the provider sent the browser, without the `?`. */
                    query: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "expiresAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listIdentities: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The identities. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "identities": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "issuer": "https://id.example.com",
                     *             "email": "ada@example.com",
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "lastUsedAt": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            identities: {
                                id: string;
                                /** @description The provider. */
                                issuer: string;
                                /** @description As the provider reported it when the identity was linked. */
                                email: string | null;
                                createdAt: string;
                                lastUsedAt: string | null;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    linkIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "query": "code=Kq3vRzA2yq0o&state=login.x1&iss=https%3A%2F%2Fid.example.com"
                 *     }
                 */
                "application/json": {
                    /** @description The query string of the URL to which the provider sent the browser, without the `?`. */
                    query: string;
                };
            };
        };
        responses: {
            /** @description The identity. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "issuer": "https://id.example.com",
                     *         "email": "ada@example.com",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "lastUsedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @description The provider. */
                            issuer: string;
                            /** @description As the provider reported it when the identity was linked. */
                            email: string | null;
                            createdAt: string;
                            lastUsedAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where to go. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "url": "https://id.example.com/auth?client_id=berth&response_type=code&state=login.x1"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The provider’s sign-in page. */
                            url: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    unlinkIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the identity, a UUID. */
                identityId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    sendFeedback: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "message": "The log of an agent could be longer."
                 *     }
                 */
                "application/json": {
                    message: string;
                };
            };
        };
        responses: {
            /** @description It is kept. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of webhooks, newest first, without their secrets. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "webhooks": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "url": "https://hooks.example.com/berth",
                     *             "events": [
                     *               "pin.*",
                     *               "agent.error"
                     *             ],
                     *             "agentId": null,
                     *             "groupId": null,
                     *             "enabled": true,
                     *             "disabledReason": null,
                     *             "failingSince": null,
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "updatedAt": "2026-11-21T10:58:03.485Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            webhooks: {
                                id: string;
                                url: string;
                                events: string[];
                                agentId: string | null;
                                groupId: string | null;
                                enabled: boolean;
                                /** @description `client`: by a request. `failing`: no delivery was accepted for five days. `gone`: the target returned 410. `behind`: 100,000 deliveries were waiting. */
                                disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                                /** @description When the first of the failed attempts since the last success failed. */
                                failingSince: string | null;
                                createdAt: string;
                                updatedAt: string;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://hooks.example.com/berth",
                 *       "events": [
                 *         "pin.*",
                 *         "agent.error"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** Format: webhook-url */
                    url: string;
                    events: ("*" | "file.*" | "pin.*" | "quota.*" | "swap.*" | "group.*" | "agent.*" | "model.*" | "snapshot.*" | "domain.*" | "channel.*" | "task.*" | "operation.*" | "key.*" | "member.*" | "invitation.*" | "disk.*" | "webhook.*" | "file.created" | "file.updated" | "file.deleted" | "pin.retrieving" | "pin.pinned" | "pin.failed" | "quota.reached" | "swap.created" | "group.created" | "group.updated" | "group.deleted" | "agent.created" | "agent.starting" | "agent.running" | "agent.error" | "agent.stopped" | "agent.deleted" | "model.budget.reached" | "model.paused" | "model.resumed" | "snapshot.created" | "domain.verified" | "domain.failed" | "channel.created" | "channel.updated" | "channel.deleted" | "task.ran" | "operation.progress" | "key.created" | "key.revoked" | "member.added" | "member.updated" | "member.removed" | "invitation.created" | "invitation.accepted" | "invitation.revoked" | "disk.low" | "webhook.disabled")[];
                    /**
                     * @description Only events about this agent.
                     * @default null
                     */
                    agentId?: string | null;
                    /**
                     * @description Only events about this group and its files.
                     * @default null
                     */
                    groupId?: string | null;
                };
            };
        };
        responses: {
            /** @description The webhook, with the secret that signs its deliveries. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDtpFCLcFMaZM="
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: no delivery was accepted for five days. `gone`: the target returned 410. `behind`: 100,000 deliveries were waiting. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first of the failed attempts since the last success failed. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Shown only once. */
                            secret: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: no delivery was accepted for five days. `gone`: the target returned 410. `behind`: 100,000 deliveries were waiting. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first of the failed attempts since the last success failed. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://hooks.example.com/berth",
                 *       "events": [
                 *         "pin.*",
                 *         "agent.error"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** Format: webhook-url */
                    url?: string;
                    events?: ("*" | "file.*" | "pin.*" | "quota.*" | "swap.*" | "group.*" | "agent.*" | "model.*" | "snapshot.*" | "domain.*" | "channel.*" | "task.*" | "operation.*" | "key.*" | "member.*" | "invitation.*" | "disk.*" | "webhook.*" | "file.created" | "file.updated" | "file.deleted" | "pin.retrieving" | "pin.pinned" | "pin.failed" | "quota.reached" | "swap.created" | "group.created" | "group.updated" | "group.deleted" | "agent.created" | "agent.starting" | "agent.running" | "agent.error" | "agent.stopped" | "agent.deleted" | "model.budget.reached" | "model.paused" | "model.resumed" | "snapshot.created" | "domain.verified" | "domain.failed" | "channel.created" | "channel.updated" | "channel.deleted" | "task.ran" | "operation.progress" | "key.created" | "key.revoked" | "member.added" | "member.updated" | "member.removed" | "invitation.created" | "invitation.accepted" | "invitation.revoked" | "disk.low" | "webhook.disabled")[];
                    agentId?: string | null;
                    groupId?: string | null;
                    enabled?: boolean;
                } | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: no delivery was accepted for five days. `gone`: the target returned 410. `behind`: 100,000 deliveries were waiting. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first of the failed attempts since the last success failed. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook, with its new secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDtpFCLcFMaZM="
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: no delivery was accepted for five days. `gone`: the target returned 410. `behind`: 100,000 deliveries were waiting. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first of the failed attempts since the last success failed. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Shown only once. */
                            secret: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "type": "pin.pinned",
                     *         "state": "pending",
                     *         "attempts": 0,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "lastAttemptAt": "2026-11-21T10:58:03.485Z",
                     *         "nextAttemptAt": null,
                     *         "endedAt": null,
                     *         "status": 204,
                     *         "response": "",
                     *         "error": null,
                     *         "body": "{\"id\":\"1816211578880123\",\"type\":\"group.created\",\"createdAt\":\"2026-11-21T10:58:03.485Z\",\"workspaceId\":\"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9\",\"resource\":{\"type\":\"group\",\"id\":\"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7\"},\"data\":{}}"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description `webhook-id` is `msg_` plus this id, in every attempt. */
                            id: string;
                            type: string;
                            /** @enum {string} */
                            state: "pending" | "delivered" | "failed";
                            attempts: number;
                            createdAt: string;
                            lastAttemptAt: string | null;
                            nextAttemptAt: string | null;
                            endedAt: string | null;
                            /** @description The HTTP status of the last response; null if there was none. */
                            status: number | null;
                            /** @description The beginning of the last response. */
                            response: string | null;
                            /** @description Why the last attempt failed. */
                            error: string | null;
                            /** @description What is sent. */
                            body: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only operations in this state. */
                state?: "pending" | "delivered" | "failed";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "deliveries": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "type": "pin.pinned",
                     *             "state": "pending",
                     *             "attempts": 0,
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "lastAttemptAt": "2026-11-21T10:58:03.485Z",
                     *             "nextAttemptAt": null,
                     *             "endedAt": null,
                     *             "status": 204,
                     *             "response": "",
                     *             "error": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            deliveries: {
                                /** @description `webhook-id` is `msg_` plus this id, in every attempt. */
                                id: string;
                                type: string;
                                /** @enum {string} */
                                state: "pending" | "delivered" | "failed";
                                attempts: number;
                                createdAt: string;
                                lastAttemptAt: string | null;
                                nextAttemptAt: string | null;
                                endedAt: string | null;
                                /** @description The HTTP status of the last response; null if there was none. */
                                status: number | null;
                                /** @description The beginning of the last response. */
                                response: string | null;
                                /** @description Why the last attempt failed. */
                                error: string | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the delivery, a UUID. */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "type": "pin.pinned",
                     *         "state": "pending",
                     *         "attempts": 0,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "lastAttemptAt": "2026-11-21T10:58:03.485Z",
                     *         "nextAttemptAt": null,
                     *         "endedAt": null,
                     *         "status": 204,
                     *         "response": "",
                     *         "error": null,
                     *         "body": "{\"id\":\"1816211578880123\",\"type\":\"group.created\",\"createdAt\":\"2026-11-21T10:58:03.485Z\",\"workspaceId\":\"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9\",\"resource\":{\"type\":\"group\",\"id\":\"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7\"},\"data\":{}}"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description `webhook-id` is `msg_` plus this id, in every attempt. */
                            id: string;
                            type: string;
                            /** @enum {string} */
                            state: "pending" | "delivered" | "failed";
                            attempts: number;
                            createdAt: string;
                            lastAttemptAt: string | null;
                            nextAttemptAt: string | null;
                            endedAt: string | null;
                            /** @description The HTTP status of the last response; null if there was none. */
                            status: number | null;
                            /** @description The beginning of the last response. */
                            response: string | null;
                            /** @description Why the last attempt failed. */
                            error: string | null;
                            /** @description What is sent. */
                            body: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    redeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
                /** @description The id of the delivery, a UUID. */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "type": "pin.pinned",
                     *         "state": "pending",
                     *         "attempts": 0,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "lastAttemptAt": "2026-11-21T10:58:03.485Z",
                     *         "nextAttemptAt": null,
                     *         "endedAt": null,
                     *         "status": 204,
                     *         "response": "",
                     *         "error": null,
                     *         "body": "{\"id\":\"1816211578880123\",\"type\":\"group.created\",\"createdAt\":\"2026-11-21T10:58:03.485Z\",\"workspaceId\":\"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9\",\"resource\":{\"type\":\"group\",\"id\":\"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7\"},\"data\":{}}"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description `webhook-id` is `msg_` plus this id, in every attempt. */
                            id: string;
                            type: string;
                            /** @enum {string} */
                            state: "pending" | "delivered" | "failed";
                            attempts: number;
                            createdAt: string;
                            lastAttemptAt: string | null;
                            nextAttemptAt: string | null;
                            endedAt: string | null;
                            /** @description The HTTP status of the last response; null if there was none. */
                            status: number | null;
                            /** @description The beginning of the last response. */
                            response: string | null;
                            /** @description Why the last attempt failed. */
                            error: string | null;
                            /** @description What is sent. */
                            body: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPlans: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plans. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "plans": [
                     *           {
                     *             "name": "pro",
                     *             "agentLimit": null,
                     *             "secretLimit": null,
                     *             "channels": true,
                     *             "customDomains": true,
                     *             "pinByCid": true,
                     *             "hotSwaps": true,
                     *             "maxFileBytes": null,
                     *             "storageBytes": null,
                     *             "requestsPerMinute": null,
                     *             "agentDiskMb": null,
                     *             "modelUsdPerMonth": null,
                     *             "modelTokensPerMonth": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            plans: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` means the setting `diskMb` of `BERTH_AGENT_LIMITS`. */
                                agentDiskMb: number | null;
                                /** @description US dollars that the agents of a workspace may spend on models in a month, in UTC. */
                                modelUsdPerMonth: string | null;
                                /** @description The same in tokens. */
                                modelTokensPerMonth: number | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAllWorkspaces: {
        parameters: {
            query?: {
                /** @description Only the workspace with this name. */
                name?: string;
                /** @description Only workspaces on this plan. */
                plan?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workspaces, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workspaces": [
                     *           {
                     *             "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "name": "catalogues",
                     *             "plan": "pro",
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "usage": {
                     *               "files": 128,
                     *               "bytes": 734003200,
                     *               "agents": 3
                     *             }
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workspaces: {
                                id: string;
                                name: string;
                                plan: string;
                                createdAt: string;
                                usage: {
                                    files: number;
                                    /** @description Total size of the content on both networks. */
                                    bytes: number;
                                    /** @description 1000 means that many or more. */
                                    agents: number;
                                };
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "catalogues",
                 *       "plan": "pro",
                 *       "owner": "Ada"
                 *     }
                 */
                "application/json": {
                    name: string;
                    /** @default free */
                    plan?: string;
                    /** @description The name of a user, who is created if no user has that name. */
                    owner: string;
                };
            };
        };
        responses: {
            /** @description The workspace, with the token of the key. It is shown only once. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "plan": "pro",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200,
                     *           "agents": 3
                     *         },
                     *         "token": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            plan: string;
                            createdAt: string;
                            usage: {
                                files: number;
                                /** @description Total size of the content on both networks. */
                                bytes: number;
                                /** @description 1000 means that many or more. */
                                agents: number;
                            };
                            token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getAnyWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "plan": "pro",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200,
                     *           "agents": 3
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            plan: string;
                            createdAt: string;
                            usage: {
                                files: number;
                                /** @description Total size of the content on both networks. */
                                bytes: number;
                                /** @description 1000 means that many or more. */
                                agents: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "catalogues",
                 *       "plan": "pro"
                 *     }
                 */
                "application/json": {
                    name?: string;
                    plan?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The updated workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "plan": "pro",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200,
                     *           "agents": 3
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            plan: string;
                            createdAt: string;
                            usage: {
                                files: number;
                                /** @description Total size of the content on both networks. */
                                bytes: number;
                                /** @description 1000 means that many or more. */
                                agents: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getInstanceUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sums. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "networks": {
                     *           "public": {
                     *             "files": 4096,
                     *             "bytes": 21474836480
                     *           },
                     *           "private": {
                     *             "files": 4096,
                     *             "bytes": 21474836480
                     *           }
                     *         },
                     *         "agents": {
                     *           "starting": 0,
                     *           "running": 0,
                     *           "not_running": 0
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            networks: {
                                public: {
                                    files: number;
                                    bytes: number;
                                };
                                private: {
                                    files: number;
                                    bytes: number;
                                };
                            };
                            /** @description 10000 means that many or more. */
                            agents: {
                                starting: number;
                                running: number;
                                not_running: number;
                            };
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getInstanceHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The parts. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "ok",
                     *         "parts": [
                     *           {
                     *             "status": "ok",
                     *             "name": "database"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @enum {string} */
                            status: "ok" | "degraded" | "down";
                            parts: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                                name: string;
                                /** @description The component’s own message. */
                                cause?: string;
                                /** @description What to do. */
                                advice?: string;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listQueues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All queues. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "queues": [
                     *           {
                     *             "name": "pins",
                     *             "queued": 3,
                     *             "running": 12,
                     *             "oldestSeconds": null,
                     *             "slots": 0
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            queues: {
                                /** @enum {string} */
                                name: "pins" | "repairs" | "storage" | "agents" | "workspaces" | "webhooks";
                                /** @description 10000 of a kind means that many or more. */
                                queued: number;
                                running: number;
                                /** @description Age of the oldest operation that waits for its first attempt; null if none waits. */
                                oldestSeconds: number | null;
                                /** @description How many operations the live workers run at a time; 0 if no worker serves the queue. */
                                slots: number;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listWorkers: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workers, in the order in which they started. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workers": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "version": null,
                     *             "isAlive": true,
                     *             "startedAt": "2026-11-21T10:58:03.485Z",
                     *             "seenAt": "2026-11-21T10:58:03.485Z",
                     *             "slots": {},
                     *             "parts": {}
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workers: {
                                id: string;
                                /** @description The version of Berth; null if the worker is older than this field. */
                                version: string | null;
                                /** @description Whether it sent a heartbeat within the last 15 seconds. */
                                isAlive: boolean;
                                startedAt: string;
                                seenAt: string;
                                /** @description How many operations of each queue it runs at a time. */
                                slots: {
                                    [key: string]: number;
                                };
                                /** @description As reported by its own `/readyz`. */
                                parts: {
                                    [key: string]: {
                                        /** @enum {string} */
                                        status: "ok" | "degraded" | "down";
                                        detail?: string;
                                    };
                                };
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description Only actions of this user. */
                userId?: string;
                /** @description Only actions with this API key. */
                keyId?: string;
                /**
                 * @description Only actions of this agent with its own tokens.
                 * @example x7f3k2ab
                 */
                agentId?: string;
                /** @description Only this action: the id of a route in this document, `signIn`, or `refusals`: all refusals of a minute that have no entry of their own. */
                action?: string;
                /** @description Only this resource and its parts: `agents/x7f3k2ab` has `agents/x7f3k2ab/secrets/…`. */
                resource?: string;
                /** @description Only actions that succeeded, only those that were refused or failed, or only those with an unknown outcome. */
                result?: "done" | "refused" | "unknown";
                /** @description Only entries from this time on. */
                from?: string;
                /** @description Only entries before this time. */
                to?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "entries": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "workspaceId": null,
                     *             "via": "key",
                     *             "user": {
                     *               "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *               "name": "Ada"
                     *             },
                     *             "keyId": null,
                     *             "agentId": null,
                     *             "action": "createSecret",
                     *             "method": "POST",
                     *             "route": "/v0/secrets",
                     *             "resource": "secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26",
                     *             "status": 201,
                     *             "errorCode": null,
                     *             "requestId": null,
                     *             "address": "203.0.113.20",
                     *             "userAgent": "curl/8.5.0"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            entries: {
                                id: string;
                                createdAt: string;
                                /** @description Null if the action belongs to no workspace. */
                                workspaceId: string | null;
                                /**
                                 * @description The credential: an API key, a dashboard session, a token of an agent, a link (signed URL, login link or invitation), none, or `npx berth`.
                                 * @enum {string}
                                 */
                                via: "key" | "session" | "gateway" | "platform" | "link" | "nobody" | "terminal";
                                user: {
                                    id: string;
                                    name: string | null;
                                } | null;
                                keyId: string | null;
                                /** @description The agent that the token belongs to. */
                                agentId: string | null;
                                action: string;
                                method: string | null;
                                /** @description The pattern of the path. */
                                route: string | null;
                                resource: string;
                                /** @description The HTTP status; 499 if the client had disconnected; null for a command. */
                                status: number | null;
                                /** @description Null if the action succeeded. `unknown` while a request is in progress, and forever if its process died during the request. */
                                errorCode: string | null;
                                requestId: string | null;
                                address: string | null;
                                userAgent: string | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                    /** @example {"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","createdAt":"2026-11-21T10:58:03.485Z","workspaceId":null,"via":"key","user":{"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","name":"Ada"},"keyId":null,"agentId":null,"action":"createSecret","method":"POST","route":"/v0/secrets","resource":"secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26","status":201,"errorCode":null,"requestId":null,"address":"203.0.113.20","userAgent":"curl/8.5.0"} */
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listInstanceAudit: {
        parameters: {
            query?: {
                /** @description Only actions of this user. */
                userId?: string;
                /** @description Only actions with this API key. */
                keyId?: string;
                /**
                 * @description Only actions of this agent with its own tokens.
                 * @example x7f3k2ab
                 */
                agentId?: string;
                /** @description Only this action: the id of a route in this document, `signIn`, or `refusals`: all refusals of a minute that have no entry of their own. */
                action?: string;
                /** @description Only this resource and its parts: `agents/x7f3k2ab` has `agents/x7f3k2ab/secrets/…`. */
                resource?: string;
                /** @description Only actions that succeeded, only those that were refused or failed, or only those with an unknown outcome. */
                result?: "done" | "refused" | "unknown";
                /** @description Only entries from this time on. */
                from?: string;
                /** @description Only entries before this time. */
                to?: string;
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
                /** @description Only entries of this workspace. */
                workspaceId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "entries": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "createdAt": "2026-11-21T10:58:03.485Z",
                     *             "workspaceId": null,
                     *             "via": "key",
                     *             "user": {
                     *               "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *               "name": "Ada"
                     *             },
                     *             "keyId": null,
                     *             "agentId": null,
                     *             "action": "createSecret",
                     *             "method": "POST",
                     *             "route": "/v0/secrets",
                     *             "resource": "secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26",
                     *             "status": 201,
                     *             "errorCode": null,
                     *             "requestId": null,
                     *             "address": "203.0.113.20",
                     *             "userAgent": "curl/8.5.0"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            entries: {
                                id: string;
                                createdAt: string;
                                /** @description Null if the action belongs to no workspace. */
                                workspaceId: string | null;
                                /**
                                 * @description The credential: an API key, a dashboard session, a token of an agent, a link (signed URL, login link or invitation), none, or `npx berth`.
                                 * @enum {string}
                                 */
                                via: "key" | "session" | "gateway" | "platform" | "link" | "nobody" | "terminal";
                                user: {
                                    id: string;
                                    name: string | null;
                                } | null;
                                keyId: string | null;
                                /** @description The agent that the token belongs to. */
                                agentId: string | null;
                                action: string;
                                method: string | null;
                                /** @description The pattern of the path. */
                                route: string | null;
                                resource: string;
                                /** @description The HTTP status; 499 if the client had disconnected; null for a command. */
                                status: number | null;
                                /** @description Null if the action succeeded. `unknown` while a request is in progress, and forever if its process died during the request. */
                                errorCode: string | null;
                                requestId: string | null;
                                address: string | null;
                                userAgent: string | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                    /** @example {"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","createdAt":"2026-11-21T10:58:03.485Z","workspaceId":null,"via":"key","user":{"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","name":"Ada"},"keyId":null,"agentId":null,"action":"createSecret","method":"POST","route":"/v0/secrets","resource":"secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26","status":201,"errorCode":null,"requestId":null,"address":"203.0.113.20","userAgent":"curl/8.5.0"} */
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listOperations: {
        parameters: {
            query?: {
                /** @description Only operations in this state. */
                state?: "queued" | "running" | "succeeded" | "failed" | "canceled";
                /** @description Only operations of this kind. */
                kind?: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                /** @description Only operations on this file or agent. */
                target?: string | unknown;
                /** @description By age: `ASC` oldest first, `DESC` newest first. */
                order?: "ASC" | "DESC";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of operations. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "operations": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "kind": "pin.add",
                     *             "target": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "target_name": null,
                     *             "state": "running",
                     *             "step": "retrieving",
                     *             "progress": null,
                     *             "attempts": 1,
                     *             "error": null,
                     *             "error_code": null,
                     *             "created_at": "2026-11-21T10:58:03.485Z",
                     *             "started_at": "2026-11-21T10:58:03.485Z",
                     *             "next_attempt_at": null,
                     *             "finished_at": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            operations: {
                                id: string;
                                /** @enum {string} */
                                kind: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                                /** @description The id of its subject: a file or an agent. */
                                target: string;
                                /** @description The name of that file or agent; for a file without a name, its CID. Null if it no longer exists. */
                                target_name: string | null;
                                /** @enum {string} */
                                state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                                /** @description Its current step, or its last step if it has ended. */
                                step: string | null;
                                progress: {
                                    [key: string]: unknown;
                                } | null;
                                attempts: number;
                                error: string | null;
                                /** @description Why it or its last attempt failed. */
                                error_code: string | null;
                                created_at: string;
                                started_at: string | null;
                                /** @description When a queued operation is due. */
                                next_attempt_at: string | null;
                                finished_at: string | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getOperation: {
        parameters: {
            query?: {
                /** @description Waits until the operation has ended, at most this many seconds (at most 300). */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "kind": "pin.add",
                     *         "target": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "target_name": null,
                     *         "state": "running",
                     *         "step": "retrieving",
                     *         "progress": null,
                     *         "attempts": 1,
                     *         "error": null,
                     *         "error_code": null,
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "started_at": "2026-11-21T10:58:03.485Z",
                     *         "next_attempt_at": null,
                     *         "finished_at": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @enum {string} */
                            kind: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                            /** @description The id of its subject: a file or an agent. */
                            target: string;
                            /** @description The name of that file or agent; for a file without a name, its CID. Null if it no longer exists. */
                            target_name: string | null;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                            /** @description Its current step, or its last step if it has ended. */
                            step: string | null;
                            progress: {
                                [key: string]: unknown;
                            } | null;
                            attempts: number;
                            error: string | null;
                            /** @description Why it or its last attempt failed. */
                            error_code: string | null;
                            created_at: string;
                            started_at: string | null;
                            /** @description When a queued operation is due. */
                            next_attempt_at: string | null;
                            finished_at: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    cancelOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation, which is cancelled or about to be. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "kind": "pin.add",
                     *         "target": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "target_name": null,
                     *         "state": "running",
                     *         "step": "retrieving",
                     *         "progress": null,
                     *         "attempts": 1,
                     *         "error": null,
                     *         "error_code": null,
                     *         "created_at": "2026-11-21T10:58:03.485Z",
                     *         "started_at": "2026-11-21T10:58:03.485Z",
                     *         "next_attempt_at": null,
                     *         "finished_at": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @enum {string} */
                            kind: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                            /** @description The id of its subject: a file or an agent. */
                            target: string;
                            /** @description The name of that file or agent; for a file without a name, its CID. Null if it no longer exists. */
                            target_name: string | null;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                            /** @description Its current step, or its last step if it has ended. */
                            step: string | null;
                            progress: {
                                [key: string]: unknown;
                            } | null;
                            attempts: number;
                            error: string | null;
                            /** @description Why it or its last attempt failed. */
                            error_code: string | null;
                            created_at: string;
                            started_at: string | null;
                            /** @description When a queued operation is due. */
                            next_attempt_at: string | null;
                            finished_at: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    streamOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, each with an operation as its data. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: operation
                     *     data: {"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","kind":"pin.add","target":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","target_name":null,"state":"running","step":"retrieving","progress":null,"attempts":1,"error":null,"error_code":null,"created_at":"2026-11-21T10:58:03.485Z","started_at":"2026-11-21T10:58:03.485Z","next_attempt_at":null,"finished_at":null}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    restartAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "version": "2026.9.6"
                 *     }
                 */
                "application/json": {
                    version?: string | null;
                } | null;
            };
        };
        responses: {
            /** @description The agent runs again. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab restarted",
                     *       "previousProcessId": "31"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The gateway’s process id in its system. */
                        previousProcessId: string | null;
                    };
                };
            };
            /** @description The agent is restarting. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab restarted",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    retryScripts: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The scripts are running. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Scripts launched"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            /** @description The scripts wait for work in progress. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Scripts launched",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentVersions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "availableVersions": [
                     *         "2026.9.6",
                     *         "2026.9.5"
                     *       ],
                     *       "availableVersionsPerEngine": {},
                     *       "engine": "openclaw",
                     *       "currentVersion": "2026.9.6"
                     *     }
                     */
                    "application/json": {
                        /** @description Newest first. */
                        availableVersions: string[];
                        availableVersionsPerEngine: {
                            [key: string]: string[];
                        };
                        engine: string;
                        currentVersion: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getAgentUpdate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "currentVersion": "2026.9.6",
                     *       "latestVersion": "2026.9.6",
                     *       "updateAvailable": false
                     *     }
                     */
                    "application/json": {
                        currentVersion: string;
                        latestVersion: string;
                        updateAvailable: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "tag": "latest"
                 *     }
                 */
                "application/json": {
                    /** @description `latest`, or a version. */
                    tag?: string | null;
                } | null;
            };
        };
        responses: {
            /** @description The agent runs on that version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "previousVersion": "2026.9.6",
                     *       "newVersion": "2026.9.6",
                     *       "output": "Restarted on 2026.9.6"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        previousVersion: string;
                        newVersion: string;
                        output: string;
                    };
                };
            };
            /** @description The agent is restarting. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "previousVersion": "2026.9.6",
                     *       "newVersion": "2026.9.6",
                     *       "output": "Restarted on 2026.9.6",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        previousVersion: string;
                        newVersion: string;
                        output: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listEngines: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The engines. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "engines": [
                     *         {
                     *           "id": "openclaw",
                     *           "label": "OpenClaw"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        engines: {
                            id: string;
                            label: string;
                        }[];
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listEngineVersions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "availableVersions": [
                     *         "2026.9.6",
                     *         "2026.9.5"
                     *       ],
                     *       "availableVersionsPerEngine": {}
                     *     }
                     */
                    "application/json": {
                        /** @description Newest first. */
                        availableVersions: string[];
                        availableVersionsPerEngine: {
                            [key: string]: string[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    findModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The models. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "hasDefault": false,
                     *         "local": [
                     *           {
                     *             "server": "ollama",
                     *             "name": "Ollama",
                     *             "models": []
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Whether the operator has set a model (`BERTH_MODEL_URL`), which agents use unless they have another. */
                            hasDefault: boolean;
                            /** @description Model servers found on the agents’ machine, with their models. Empty if agents cannot reach that machine. */
                            local: {
                                /** @enum {string} */
                                server: "ollama" | "lm-studio" | "llama.cpp";
                                name: string;
                                models: string[];
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentUsage: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The usage of the workspace’s agents. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "usage": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "at": "2026-11-21T10:58:03.485Z",
                     *           "memoryBytes": 0,
                     *           "memoryLimitBytes": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        usage: {
                            agentId: string;
                            /** @description When it was read. */
                            at: string;
                            memoryBytes: number;
                            /** @description Null if the agent has no limit of its own because it runs as a process. */
                            memoryLimitBytes: number | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readAgentUsage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its usage. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "memoryLimitBytes": null,
                     *       "disk": {
                     *         "usedBytes": 0,
                     *         "limitBytes": 0
                     *       },
                     *       "samples": [
                     *         {
                     *           "at": "2026-11-21T10:58:03.485Z",
                     *           "memoryBytes": 0,
                     *           "cpus": 0,
                     *           "diskBytes": 0,
                     *           "processes": 9
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description Null if the agent has no limit of its own because it runs as a process. */
                        memoryLimitBytes: number | null;
                        disk: {
                            usedBytes: number;
                            limitBytes: number;
                        };
                        /** @description Oldest first. */
                        samples: {
                            at: string;
                            /** @description Resident memory of all its processes. */
                            memoryBytes: number;
                            /** @description Average number of processors used since the previous sample. */
                            cpus: number;
                            diskBytes: number;
                            processes: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgents: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agents of the workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agents": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "Librarian",
                     *           "description": "Keeps the catalogue.",
                     *           "vibe": null,
                     *           "emoji": null,
                     *           "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "status": "running",
                     *           "statusReason": null,
                     *           "lastSync": null,
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "fileManifest": null,
                     *           "snapshotsUpdatedAt": null,
                     *           "engine": "openclaw",
                     *           "agentVersion": "2026.9.6"
                     *         }
                     *       ],
                     *       "agentLimit": 10,
                     *       "timeCredits": null
                     *     }
                     */
                    "application/json": {
                        agents: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host and its git repository. Null for read-only callers and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last saved as its newest snapshot, or found unchanged since. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, one line `<size> <path>` each, at most 64 KiB. If there are more, the last line begins with `…`. Null except in responses for a single agent. */
                            fileManifest: string | null;
                            /** @description When its newest snapshot was taken. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        }[];
                        /** @description Agents that the plan allows; null for no limit. */
                        agentLimit: number | null;
                        timeCredits: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Librarian",
                 *       "templateId": "assistant"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: agent-name
                     * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                     */
                    name: string;
                    description?: string | null;
                    vibe?: string | null;
                    emoji?: string | null;
                    /**
                     * @default openclaw
                     * @constant
                     */
                    engine?: "openclaw";
                    /**
                     * @description Secrets of the workspace for the agent, from its first start.
                     * @default []
                     */
                    secretIds?: string[];
                    /** @description The owner’s name, as the agent knows it. */
                    userName?: string | null;
                    userEmail?: string | null;
                    /** @description Skills for the agent from its first start: CIDs in the library, or slugs. */
                    skillCids?: string[] | null;
                    /** @description A template, by its id or slug, whose files the agent starts with. Its description, vibe and emoji apply unless the body sets them. */
                    templateId?: string | null;
                    /** @description A model of a server on the agent’s own machine, as `findModels` has them. Its config begins with it, whatever the operator’s model is. Only where agents are processes. */
                    localModel?: {
                        /** @enum {string} */
                        server: "ollama" | "lm-studio" | "llama.cpp";
                        model: string;
                    } | null;
                    /** @description Bodies of `configureChannel`, by channel. */
                    channels?: {
                        telegram?: {
                            botToken?: string & (unknown & unknown);
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name for `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Allowed senders, in the channel’s own format: numeric ids for Telegram. */
                            allowFrom?: (string | number)[];
                            /** @description Saves the change without restarting the gateway. */
                            skipRestart?: boolean;
                        };
                        slack?: {
                            botToken?: string & (unknown & unknown);
                            appToken?: string & (unknown & unknown);
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name for `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Allowed senders, in the channel’s own format: numeric ids for Telegram. */
                            allowFrom?: (string | number)[];
                            /** @description Saves the change without restarting the gateway. */
                            skipRestart?: boolean;
                        };
                        discord?: {
                            botToken?: string;
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name for `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Allowed senders, in the channel’s own format: numeric ids for Telegram. */
                            allowFrom?: (string | number)[];
                            /** @description Saves the change without restarting the gateway. */
                            skipRestart?: boolean;
                        };
                        whatsapp?: {
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name for `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Allowed senders, in the channel’s own format: numeric ids for Telegram. */
                            allowFrom?: (string | number)[];
                            /** @description Saves the change without restarting the gateway. */
                            skipRestart?: boolean;
                        };
                    };
                };
            };
        };
        responses: {
            /** @description The agent. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host and its git repository. Null for read-only callers and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last saved as its newest snapshot, or found unchanged since. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, one line `<size> <path>` each, at most 64 KiB. If there are more, the last line begins with `…`. Null except in responses for a single agent. */
                            fileManifest: string | null;
                            /** @description When its newest snapshot was taken. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            /** @description An internal error; the log has the cause. */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "error": "Gateway failed to start",
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       }
                     *     }
                     */
                    "application/json": {
                        error: string;
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host and its git repository. Null for read-only callers and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last saved as its newest snapshot, or found unchanged since. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, one line `<size> <path>` each, at most 64 KiB. If there are more, the last line begins with `…`. Null except in responses for a single agent. */
                            fileManifest: string | null;
                            /** @description When its newest snapshot was taken. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                    };
                };
            };
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    getAgent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       },
                     *       "processStatus": "running",
                     *       "processId": "31",
                     *       "disk": {
                     *         "usedBytes": 14155776,
                     *         "limitBytes": 10737418240,
                     *         "hardLimit": false
                     *       },
                     *       "skills": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "attachedAt": "2026-11-21T10:58:03.485Z",
                     *           "name": "invoices",
                     *           "description": "Write invoices from the price list.",
                     *           "version": "1.2.0",
                     *           "slug": null
                     *         }
                     *       ],
                     *       "secrets": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "name": "OPENAI_API_KEY",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "synced": true
                     *         }
                     *       ],
                     *       "snapshots": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *           "changeSummary": null,
                     *           "contentDiff": null,
                     *           "createdAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ],
                     *       "portForwarding": [
                     *         {
                     *           "port": 3000,
                     *           "pathPrefix": "/",
                     *           "protected": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host and its git repository. Null for read-only callers and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last saved as its newest snapshot, or found unchanged since. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, one line `<size> <path>` each, at most 64 KiB. If there are more, the last line begins with `…`. Null except in responses for a single agent. */
                            fileManifest: string | null;
                            /** @description When its newest snapshot was taken. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                        /**
                         * @description Current state of the gateway.
                         * @enum {string}
                         */
                        processStatus: "starting" | "running" | "not_running";
                        /** @description The gateway’s process id in its system. */
                        processId: string | null;
                        /** @description Its workspace, engine state and home together. Null while the agent cannot be reached. */
                        disk: {
                            usedBytes: number;
                            limitBytes: number;
                            /** @description Whether the file system enforces the limit. If not, Berth measures about every ten seconds, and stops an agent that exceeds the limit. */
                            hardLimit: boolean;
                        } | null;
                        skills: {
                            agentId: string;
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description The attached version. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                        }[];
                        secrets: {
                            id: string;
                            name: string;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Whether the running gateway has the current value. */
                            synced: boolean;
                        }[];
                        /** @description The newest 10 snapshots, newest first. */
                        snapshots: {
                            agentId: string;
                            /** @description A folder on IPFS: the tree of the commit. */
                            snapshotCid: string;
                            userId: string;
                            /** @description The commit in the agent’s git repository. */
                            commitSha: string | null;
                            /** @description A readable summary of the changes since the previous snapshot. */
                            changeSummary: string | null;
                            /** @description Unified diff against the previous snapshot, at most 64 KiB. */
                            contentDiff: string | null;
                            createdAt: string;
                        }[];
                        portForwarding: {
                            port: number;
                            pathPrefix: string;
                            protected: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab deleted",
                     *       "wasInRegistry": true,
                     *       "r2ObjectsDeleted": 0
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        wasInRegistry: boolean;
                        r2ObjectsDeleted: number;
                    };
                };
            };
            /** @description The agent is deleted; its container is being removed. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab deleted",
                     *       "wasInRegistry": true,
                     *       "r2ObjectsDeleted": 0,
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        wasInRegistry: boolean;
                        r2ObjectsDeleted: number;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "vibe": "quiet and exact",
                 *       "emoji": "📚"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: agent-name
                     * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                     */
                    name?: string;
                    description?: string | null;
                    vibe?: string | null;
                    emoji?: string | null;
                } | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The changed agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host and its git repository. Null for read-only callers and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last saved as its newest snapshot, or found unchanged since. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, one line `<size> <path>` each, at most 64 KiB. If there are more, the last line begins with `…`. Null except in responses for a single agent. */
                            fileManifest: string | null;
                            /** @description When its newest snapshot was taken. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getAgentStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its state. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "status": "running",
                     *       "statusReason": null,
                     *       "engine": "openclaw",
                     *       "agentVersion": "2026.9.6",
                     *       "reachable": true,
                     *       "startedAt": "2026-11-21T10:58:03.485Z",
                     *       "gateway": {
                     *         "state": "stopped",
                     *         "pid": null,
                     *         "restarts": 0,
                     *         "exitCode": null,
                     *         "reason": null,
                     *         "outOfMemory": null,
                     *         "lastLines": []
                     *       },
                     *       "scripts": {
                     *         "build": {
                     *           "state": "not_configured",
                     *           "exitCode": null,
                     *           "startedAt": null,
                     *           "finishedAt": null
                     *         },
                     *         "start": {
                     *           "state": "not_configured",
                     *           "exitCode": null,
                     *           "startedAt": null,
                     *           "finishedAt": null
                     *         }
                     *       },
                     *       "skillProblems": [],
                     *       "disk": {
                     *         "usedBytes": 14155776,
                     *         "limitBytes": 10737418240,
                     *         "hardLimit": false
                     *       }
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        /** @enum {string} */
                        status: "starting" | "running" | "not_running";
                        /** @description Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model. */
                        statusReason: string | null;
                        engine: string;
                        agentVersion: string;
                        /** @description Whether the agent’s supervisor responded. */
                        reachable: boolean;
                        /** @description When the supervisor started. */
                        startedAt: string | null;
                        gateway: {
                            /** @enum {string} */
                            state: "stopped" | "starting" | "ready" | "failed";
                            pid: number | null;
                            restarts: number;
                            exitCode: number | null;
                            reason: string | null;
                            /**
                             * @description When and why it restarted by itself, if the kernel killed it for memory.
                             * @default null
                             */
                            outOfMemory: string | null;
                            lastLines: string[];
                        } | null;
                        /** @description Null until the agent has started once. */
                        scripts: {
                            build: {
                                /** @enum {string} */
                                state: "not_configured" | "pending" | "running" | "success" | "failed";
                                exitCode: number | null;
                                startedAt: string | null;
                                finishedAt: string | null;
                                /** @description Why it failed, if the kernel killed one of its processes for memory. */
                                reason?: string;
                            };
                            start: {
                                /** @enum {string} */
                                state: "not_configured" | "pending" | "running" | "success" | "failed";
                                exitCode: number | null;
                                startedAt: string | null;
                                finishedAt: string | null;
                                /** @description Why it failed, if the kernel killed one of its processes for memory. */
                                reason?: string;
                            };
                        } | null;
                        /** @description Attached skills that the agent did not have correctly when they were last written to it. */
                        skillProblems: {
                            name: string;
                            message: string;
                        }[];
                        /** @description Its workspace, engine state and home together. Null while the agent cannot be reached. */
                        disk: {
                            usedBytes: number;
                            limitBytes: number;
                            /** @description Whether the file system enforces the limit. If not, Berth measures about every ten seconds, and stops an agent that exceeds the limit. */
                            hardLimit: boolean;
                        } | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secrets, without their values. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "secrets": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "OPENAI_API_KEY",
                     *           "type": "secret",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "agents": [
                     *             {
                     *               "agentId": "x7f3k2ab",
                     *               "name": "OPENAI_API_KEY"
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "secretLimit": 500
                     *     }
                     */
                    "application/json": {
                        secrets: {
                            id: string;
                            userId: string;
                            name: string;
                            /**
                             * @description The value of a variable is shown; the value of a secret is never shown.
                             * @enum {string}
                             */
                            type: "secret" | "variable";
                            /** @description Only for variables; null if it was encrypted with another SECRETS_KEY. */
                            value?: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @description The agents that it is attached to. */
                            agents: {
                                agentId: string;
                                name: string;
                            }[];
                        }[];
                        /** @description Secrets that the plan allows; null for no limit. */
                        secretLimit: number | null;
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createSecret: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "OPENAI_API_KEY",
                 *       "value": "sk-proj-…"
                 *     }
                 */
                "application/json": {
                    /** @description The name of the environment variable in agents. */
                    name: string;
                    value: string;
                    /**
                     * @description The value of a variable is shown; the value of a secret is never shown.
                     * @default secret
                     * @enum {string}
                     */
                    type?: "secret" | "variable";
                };
            };
        };
        responses: {
            /** @description The secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "secret": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "OPENAI_API_KEY",
                     *         "type": "secret",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        secret: {
                            id: string;
                            userId: string;
                            name: string;
                            /**
                             * @description The value of a variable is shown; the value of a secret is never shown.
                             * @enum {string}
                             */
                            type: "secret" | "variable";
                            /** @description Only for variables; null if it was encrypted with another SECRETS_KEY. */
                            value?: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "value": "sk-proj-…"
                 *     }
                 */
                "application/json": {
                    value: string;
                };
            };
        };
        responses: {
            /** @description The secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "secret": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "OPENAI_API_KEY",
                     *         "type": "secret",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        secret: {
                            id: string;
                            userId: string;
                            name: string;
                            /**
                             * @description The value of a variable is shown; the value of a secret is never shown.
                             * @enum {string}
                             */
                            type: "secret" | "variable";
                            /** @description Only for variables; null if it was encrypted with another SECRETS_KEY. */
                            value?: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. A malformed id returns 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The attached secrets, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "secrets": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "name": "OPENAI_API_KEY",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "synced": true
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        secrets: {
                            id: string;
                            name: string;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Whether the running gateway has the current value. */
                            synced: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    attachSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "secretIds": [
                 *         "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Ids of secrets of the workspace. */
                    secretIds: string[];
                };
            };
        };
        responses: {
            /** @description How many of the given secrets are attached now, which is all of them. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "attached": 1,
                     *       "message": "The agent restarts to get them"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        attached: number;
                        message: string;
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    detachSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the secret, a UUID. */
                secretId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Detached. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSkills: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skills of the workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skills": [
                     *         {
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "name": "invoices",
                     *           "description": "Write invoices from the price list.",
                     *           "version": "1.2.0",
                     *           "slug": null,
                     *           "network": "public",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "envVars": [
                     *             {
                     *               "name": "INVOICE_API_KEY"
                     *             }
                     *           ],
                     *           "fileId": null
                     *         }
                     *       ],
                     *       "currentUserId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60"
                     *     }
                     */
                    "application/json": {
                        skills: {
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            createdAt: string;
                            updatedAt: string;
                            userId: string;
                            /** @description Environment variables that it reads, for people who attach secrets. */
                            envVars: {
                                name: string;
                                description?: string;
                            }[];
                            /** @description The file of the workspace with the same content. */
                            fileId: string | null;
                        }[];
                        currentUserId: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addSkill: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "invoices"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description CID of a folder with SKILL.md.
                     */
                    skillCid: string;
                    /** @description Its folder in agents. */
                    name: string;
                    /** @description Taken from SKILL.md if not given. */
                    description?: string;
                    /** @default [] */
                    envVars?: {
                        name: string;
                        description?: string;
                    }[];
                    /**
                     * Format: uuid
                     * @description A file of the workspace with this content.
                     */
                    fileId?: string;
                };
            };
        };
        responses: {
            /** @description The skill. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "skill": {
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.2.0",
                     *         "slug": null,
                     *         "network": "public",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "envVars": [
                     *           {
                     *             "name": "INVOICE_API_KEY"
                     *           }
                     *         ],
                     *         "fileId": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        skill: {
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            createdAt: string;
                            updatedAt: string;
                            userId: string;
                            /** @description Environment variables that it reads, for people who attach secrets. */
                            envVars: {
                                name: string;
                                description?: string;
                            }[];
                            /** @description The file of the workspace with the same content. */
                            fileId: string | null;
                        };
                    };
                };
            };
            /** @description Its content is being retrieved. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The content is being retrieved: repeat the request when the operation has ended",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSkillVersions: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description Its id, or the CID of one of its versions. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skillId": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "versions": [
                     *         {
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "version": "1.2.0",
                     *           "network": "public",
                     *           "fileId": null,
                     *           "createdAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        skillId: string;
                        versions: {
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            fileId: string | null;
                            createdAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addSkillVersion: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Its id, or the CID of one of its versions. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
                 *     }
                 */
                "application/json": {
                    /** Format: cid */
                    skillCid: string;
                    /** @description Taken from SKILL.md if not given. */
                    version?: string;
                    /** Format: uuid */
                    fileId?: string;
                };
            };
        };
        responses: {
            /** @description The version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "version": {
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "version": "1.2.0",
                     *         "network": "public",
                     *         "fileId": null,
                     *         "createdAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        version: {
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            fileId: string | null;
                            createdAt: string;
                        };
                    };
                };
            };
            /** @description Its content is being retrieved. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The content is being retrieved: repeat the request when the operation has ended",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSkill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id, or the CID of one of its versions. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skill is not in the library. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Skill invoices deleted",
                     *       "wasInLibrary": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        wasInLibrary: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentSkills: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skills. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skills": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "attachedAt": "2026-11-21T10:58:03.485Z",
                     *           "name": "invoices",
                     *           "description": "Write invoices from the price list.",
                     *           "version": "1.2.0",
                     *           "slug": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        skills: {
                            agentId: string;
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description The attached version. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    attachSkills: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "skillCids": [
                 *         "@berth/journal"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description CIDs of skills in the library, or slugs (`@owner/name`). */
                    skillCids: string[];
                };
            };
        };
        responses: {
            /** @description The skills are attached. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "attached": 2
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description How many of the given skills are attached now, which is all of them. */
                        attached: number;
                    };
                };
            };
            /** @description Berth has recorded the change; the agent gets it when its current work has ended. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "attached": 2,
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description How many of the given skills are attached now, which is all of them. */
                        attached: number;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    detachSkill: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the skill in the library, a UUID. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skill is detached. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            /** @description Berth has recorded the change; the agent gets it when its current work has ended. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSkillUpdates: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Each skill of the agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "updates": [
                     *         {
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "name": "invoices",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "version": "1.2.0",
                     *           "latestSkillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "latestVersion": "1.2.0",
                     *           "updateAvailable": false,
                     *           "folder": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        updates: {
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            name: string;
                            /** @description The attached version. */
                            skillCid: string;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            latestSkillCid: string;
                            /** @description Semantic version, if the skill names one. */
                            latestVersion: string | null;
                            updateAvailable: boolean;
                            /** @description State of its folder in the agent: `modified`, the agent has changed it; `other`, it is another version or has another origin, in conflict; `missing`. Null while the agent does not respond. */
                            folder: ("same" | "modified" | "other" | "missing") | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateSkill: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the skill in the library, a UUID. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "expectedSkillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "resolution": "replace"
                 *     }
                 */
                "application/json": {
                    /** @description The wanted version; the newest if neither is given. */
                    version?: string;
                    /**
                     * Format: cid
                     * @description The wanted version by its CID.
                     */
                    skillCid?: string;
                    /**
                     * Format: cid
                     * @description The version that the caller believes is attached: 409 if another one is.
                     */
                    expectedSkillCid?: string;
                    /**
                     * @description `replace`: the agent’s changes in the folder are lost. `keep`: the folder stays as the agent has it, and counts as this version.
                     * @enum {string}
                     */
                    resolution?: "replace" | "keep";
                };
            };
        };
        responses: {
            /** @description The skill as attached now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "skill": {
                     *         "agentId": "x7f3k2ab",
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "attachedAt": "2026-11-21T10:58:03.485Z",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.2.0",
                     *         "slug": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        skill: {
                            agentId: string;
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description The attached version. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                        };
                    };
                };
            };
            /** @description Berth has recorded the change; the agent gets it when its current work has ended. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "skill": {
                     *         "agentId": "x7f3k2ab",
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "attachedAt": "2026-11-21T10:58:03.485Z",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.2.0",
                     *         "slug": null
                     *       },
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        skill: {
                            agentId: string;
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description The attached version. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                        };
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listHub: {
        parameters: {
            query?: {
                /** @description Words in its name, description or tags. */
                q?: string;
                /**
                 * @description Only this category.
                 * @example productivity
                 */
                category?: string;
                /** @description Order: by number of installations, by age, or by name. */
                sort?: "popular" | "newest" | "name";
                /** @description Only featured templates, or only others. */
                featured?: "true" | "false";
                /** @description `nextCursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the hub. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skills": [
                     *         {
                     *           "hubSkillId": "QGJlcnRoL2pvdXJuYWw",
                     *           "skillCid": null,
                     *           "name": "journal",
                     *           "slug": "@berth/journal",
                     *           "description": "Keep a short journal of what was done and decided, so that the next session knows it.",
                     *           "longDescription": null,
                     *           "authorName": "Berth",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "productivity",
                     *           "tags": [
                     *             "memory",
                     *             "notes"
                     *           ],
                     *           "envVars": [],
                     *           "readmeUrl": null,
                     *           "featured": false,
                     *           "installCount": 3,
                     *           "version": "1.0.0",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": {
                        skills: {
                            hubSkillId: string;
                            /** @description Its folder on IPFS; null if it is known only after the installation. */
                            skillCid: string | null;
                            name: string;
                            /** @description `@owner/name`. */
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            envVars: {
                                name: string;
                                description?: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required?: boolean;
                            }[];
                            readmeUrl: string | null;
                            featured: boolean;
                            /** @description Number of libraries in this Berth that have it. */
                            installCount: number;
                            version: string | null;
                            createdAt: string;
                            updatedAt: string;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getHubSkill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Its slug, plain or percent-encoded (`%40owner%2Fname`), or its `hubSkillId`.
                 * @example assistant
                 */
                slug: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skill. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skill": {
                     *         "hubSkillId": "QGJlcnRoL2pvdXJuYWw",
                     *         "skillCid": null,
                     *         "name": "journal",
                     *         "slug": "@berth/journal",
                     *         "description": "Keep a short journal of what was done and decided, so that the next session knows it.",
                     *         "longDescription": null,
                     *         "authorName": "Berth",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "productivity",
                     *         "tags": [
                     *           "memory",
                     *           "notes"
                     *         ],
                     *         "envVars": [],
                     *         "readmeUrl": null,
                     *         "featured": false,
                     *         "installCount": 3,
                     *         "version": "1.0.0",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        skill: {
                            hubSkillId: string;
                            /** @description Its folder on IPFS; null if it is known only after the installation. */
                            skillCid: string | null;
                            name: string;
                            /** @description `@owner/name`. */
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            envVars: {
                                name: string;
                                description?: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required?: boolean;
                            }[];
                            readmeUrl: string | null;
                            featured: boolean;
                            /** @description Number of libraries in this Berth that have it. */
                            installCount: number;
                            version: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    installHubSkill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Its slug, plain or percent-encoded (`%40owner%2Fname`), or its `hubSkillId`.
                 * @example assistant
                 */
                slug: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skill in the library. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "skill": {
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.2.0",
                     *         "slug": null,
                     *         "network": "public",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "envVars": [
                     *           {
                     *             "name": "INVOICE_API_KEY"
                     *           }
                     *         ],
                     *         "fileId": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        skill: {
                            /** @description The skill’s id in the library, the same for all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, if the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` if it came from the hub. */
                            slug: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            createdAt: string;
                            updatedAt: string;
                            userId: string;
                            /** @description Environment variables that it reads, for people who attach secrets. */
                            envVars: {
                                name: string;
                                description?: string;
                            }[];
                            /** @description The file of the workspace with the same content. */
                            fileId: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    getGatewayToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token, and the URLs that accept it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *       "wsUrl": "wss://x7f3k2ab.agents.example",
                     *       "baseUrl": "https://x7f3k2ab.agents.example"
                     *     }
                     */
                    "application/json": {
                        token: string;
                        /** @description The agent’s own host, for WebSockets. */
                        wsUrl: string;
                        /** @description The same for HTTP. */
                        baseUrl: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    rotateGatewayToken: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new token. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *       "wsUrl": "wss://x7f3k2ab.agents.example",
                     *       "baseUrl": "https://x7f3k2ab.agents.example"
                     *     }
                     */
                    "application/json": {
                        token: string;
                        /** @description The agent’s own host, for WebSockets. */
                        wsUrl: string;
                        /** @description The same for HTTP. */
                        baseUrl: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createPlatformToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl"
                     *     }
                     */
                    "application/json": {
                        /** @description A JWT, valid for one hour. */
                        token: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    whoami: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "name": "Librarian",
                     *       "status": "running",
                     *       "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *       "workspaceId": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *       "tokenKind": "gateway"
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        name: string;
                        /** @enum {string} */
                        status: "starting" | "running" | "not_running";
                        userId: string;
                        workspaceId: string;
                        /**
                         * @description `key`: an API key of the workspace.
                         * @enum {string}
                         */
                        tokenKind: "gateway" | "platform" | "key";
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readAgentLogs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, as one text. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "logs": "2026-11-21T10:58:07.120Z INFO gateway/ws listening on 127.0.0.1:18789\n2026-11-21T10:58:09.481Z INFO script/build done"
                     *     }
                     */
                    "application/json": {
                        logs: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    followAgentLogs: {
        parameters: {
            query?: {
                /** @description How many of the last lines to send first. */
                lines?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, streamed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: line
                     *     data: {"timestamp":"2026-11-21T10:58:03.485Z","level":"TRACE","source":"gateway","message":"http server listening"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listConversations: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The conversations, latest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversations": [
                     *         {
                     *           "conversationId": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "title": "Which books came this week?",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "isReplying": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        conversations: {
                            conversationId: string;
                            /** @description The first words of the conversation. */
                            title: string | null;
                            updatedAt: string | null;
                            isReplying: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readConversation: {
        parameters: {
            query?: {
                /** @description Maximum number of messages. */
                limit?: number;
                /** @description How many of the newest messages to skip: `nextOffset` of the previous page. */
                offset?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID chosen by the client; the first message starts the conversation. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its latest messages. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messages": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "role": "user",
                     *           "text": "Which books came this week?",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "toolCalls": [],
                     *           "toolCallId": null,
                     *           "isError": false
                     *         }
                     *       ],
                     *       "isReplying": false,
                     *       "nextOffset": null
                     *     }
                     */
                    "application/json": {
                        /** @description Oldest first. */
                        messages: {
                            id: string;
                            /**
                             * @description `tool` is the result of a tool call.
                             * @enum {string}
                             */
                            role: "user" | "assistant" | "tool";
                            text: string;
                            createdAt: string | null;
                            /** @description Tools that the agent called in this message. */
                            toolCalls: {
                                id: string;
                                name: string;
                                /** @description As JSON. */
                                arguments: string;
                            }[];
                            /** @description The call whose result this is. */
                            toolCallId: string | null;
                            /** @description True if the call, or the reply, failed. */
                            isError: boolean;
                        }[];
                        isReplying: boolean;
                        /** @description Where older messages begin; null if there are none. */
                        nextOffset: number | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID chosen by the client; the first message starts the conversation. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    sendMessage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID chosen by the client; the first message starts the conversation. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "text": "Which books came this week?"
                 *     }
                 */
                "application/json": {
                    /** @description The message to the agent. */
                    text: string;
                };
            };
        };
        responses: {
            /** @description The reply, streamed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: message
                     *     data: {"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","role":"user","text":"Which books came this week?","createdAt":"2026-11-21T10:58:03.485Z","toolCalls":[],"toolCallId":null,"isError":false}
                     *
                     *     event: end
                     *     data: {"state":"done"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
        };
    };
    followConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID chosen by the client; the first message starts the conversation. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The reply, streamed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: message
                     *     data: {"id":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","role":"user","text":"Which books came this week?","createdAt":"2026-11-21T10:58:03.485Z","toolCalls":[],"toolCallId":null,"isError":false}
                     *
                     *     event: end
                     *     data: {"state":"done"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
        };
    };
    stopReply: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID chosen by the client; the first message starts the conversation. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether there was a reply to stop. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "stopped": true
                     *     }
                     */
                    "application/json": {
                        stopped: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    execCommand: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "git log --oneline -1",
                 *       "cwd": "/home/node/clawd"
                 *     }
                 */
                "application/json": {
                    /** @description The shell command. */
                    command: string;
                    /** @description Working directory, absolute or below `/home/node/clawd`, which is the default. */
                    cwd?: string;
                };
            };
        };
        responses: {
            /** @description How the command ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "stdout": "4f1c2ab feat: begin workspace\n",
                     *       "stderr": "",
                     *       "exitCode": 0,
                     *       "truncated": false,
                     *       "timedOut": false,
                     *       "command": "git log --oneline -1",
                     *       "timestamp": "2026-11-21T10:58:03.485Z"
                     *     }
                     */
                    "application/json": {
                        stdout: string;
                        stderr: string;
                        /** @description 128 + the signal’s number if a signal ended it. */
                        exitCode: number;
                        /** @description True if there was more output than is kept. */
                        truncated: boolean;
                        /** @description True if it ran too long and was killed. */
                        timedOut: boolean;
                        /** @description Why it failed, if the kernel killed a process for memory; also the last line of `stderr`. */
                        reason?: string;
                        /** @description The shell command. */
                        command: string;
                        timestamp: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readAgentFile: {
        parameters: {
            query: {
                /** @description Absolute, or below `/home/node/clawd`. */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example # Librarian */
                    "*/*": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    writeAgentFile: {
        parameters: {
            query: {
                /** @description Absolute, or below `/home/node/clawd`. */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example <bytes> */
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description The file is written. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/home/node/clawd/workspace/NOTES.md",
                     *       "size": 12,
                     *       "version": "\"1835021-12-1795431483485.1\""
                     *     }
                     */
                    "application/json": {
                        path: string;
                        size: number;
                        /** @description Its `ETag`, for the next write. */
                        version: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteAgentFile: {
        parameters: {
            query: {
                /** @description Absolute, or below `/home/node/clawd`. */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file or folder is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "path": "/home/node/clawd/workspace/NOTES.md"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        path: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentFiles: {
        parameters: {
            query?: {
                /** @description Absolute, or below `/home/node/clawd`, which is the default. */
                path?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its entries, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "name": "IDENTITY.md",
                     *           "type": "file",
                     *           "size": 12,
                     *           "modifiedAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ],
                     *       "truncated": false,
                     *       "path": "/home/node/clawd/workspace"
                     *     }
                     */
                    "application/json": {
                        entries: {
                            name: string;
                            /** @enum {string} */
                            type: "file" | "directory" | "symlink" | "other";
                            size: number;
                            modifiedAt: string;
                        }[];
                        truncated: boolean;
                        path: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    uploadAgentFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filename": "notes.txt",
                 *       "contentBase64": "SGVsbG8K"
                 *     }
                 */
                "application/json": {
                    /** Format: file-name */
                    filename: string;
                    /**
                     * Format: base64
                     * @description The content: base64 (RFC 4648, 4) with padding, without a `data:` prefix.
                     */
                    contentBase64: string;
                };
            };
        };
        responses: {
            /** @description The file’s path. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/home/node/clawd/workspace/NOTES.md",
                     *       "filename": "notes.txt",
                     *       "size": 12
                     *     }
                     */
                    "application/json": {
                        path: string;
                        filename: string;
                        size: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    gitRefs: {
        parameters: {
            query: {
                /** @description To fetch, or to push. */
                service: "git-upload-pack" | "git-receive-pack";
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The branches, in git’s own format. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example 001e# service=git-upload-pack
                     *     0000
                     */
                    "*/*": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    gitUploadPack: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example 0014command=ls-refs
                 *     0000
                 */
                "application/x-git-upload-pack-request": string;
            };
        };
        responses: {
            /** @description In git’s own format. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example 0008NAK
                     *     0000
                     */
                    "application/x-git-upload-pack-result": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    gitReceivePack: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example 0014command=ls-refs
                 *     0000
                 */
                "application/x-git-receive-pack-request": string;
            };
        };
        responses: {
            /** @description In git’s own format. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example 0008NAK
                     *     0000
                     */
                    "application/x-git-receive-pack-result": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    manifestSchema: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schema. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    readConfig: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The config. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "config": "{ \"agents\": { \"defaults\": { \"model\": { \"primary\": \"berth/default\" } } } }"
                     *     }
                     */
                    "application/json": {
                        config: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    writeConfig: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "config": "{ \"agents\": { \"defaults\": { \"model\": { \"primary\": \"berth/default\" } } } }"
                 *     }
                 */
                "application/json": {
                    /** @description The config: a JSON object, or its text, which may be JSON5. */
                    config: string | {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description The config is written; `ETag` contains its new version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Config written"
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listOperatorKeys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": []
                     *     }
                     */
                    "application/json": {
                        /** @description Paths of keys, such as `gateway.mode`. Empty until the gateway has started once. */
                        keys: string[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readConfigSchema: {
        parameters: {
            query?: {
                /** @description Keys joined by dots, such as `agents.defaults`; `*` matches any key. The whole config by default. */
                path?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "agents.defaults.heartbeat",
                     *       "schema": {},
                     *       "children": [
                     *         {
                     *           "key": "every",
                     *           "path": "agents.defaults.heartbeat",
                     *           "required": false,
                     *           "hasChildren": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        path: string;
                        /** @description JSON Schema of the value, without the keys below it. */
                        schema: {
                            [key: string]: unknown;
                        };
                        label?: string;
                        help?: string;
                        /** @description True if the value is a secret. */
                        sensitive?: boolean;
                        /** @description The keys below it. */
                        children: {
                            /** @description `*` stands for any key, or any position in a list. */
                            key: string;
                            path: string;
                            type?: string | string[];
                            required: boolean;
                            hasChildren: boolean;
                            label?: string;
                            help?: string;
                            /** @description True if the value is a secret. */
                            sensitive?: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    validateConfig: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "config": "{ \"agents\": { \"defaults\": { \"model\": { \"primary\": \"berth/default\" } } } }"
                 *     }
                 */
                "application/json": {
                    /** @description The config: a JSON object, or its text, which may be JSON5. */
                    config?: string | {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description The engine’s verdict. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "output": ""
                     *     }
                     */
                    "application/json": {
                        valid: boolean;
                        /** @description The engine’s output. */
                        output: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listChannels: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The channels. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "telegram": {
                     *         "configured": true,
                     *         "enabled": true,
                     *         "dmPolicy": "pairing",
                     *         "allowFrom": [
                     *           "603767951"
                     *         ],
                     *         "botTokenSet": false,
                     *         "botTokenHint": null
                     *       },
                     *       "slack": {
                     *         "configured": true,
                     *         "enabled": true,
                     *         "dmPolicy": "pairing",
                     *         "allowFrom": [
                     *           "603767951"
                     *         ],
                     *         "botTokenSet": false,
                     *         "botTokenHint": null,
                     *         "appTokenSet": false,
                     *         "appTokenHint": null
                     *       },
                     *       "discord": {
                     *         "configured": true,
                     *         "enabled": true,
                     *         "dmPolicy": "pairing",
                     *         "allowFrom": [
                     *           "603767951"
                     *         ],
                     *         "botTokenSet": false,
                     *         "botTokenHint": null
                     *       },
                     *       "whatsapp": {
                     *         "configured": true,
                     *         "enabled": true,
                     *         "dmPolicy": "pairing",
                     *         "allowFrom": [
                     *           "603767951"
                     *         ],
                     *         "linked": false
                     *       },
                     *       "version": "2026.9.6"
                     *     }
                     */
                    "application/json": {
                        telegram: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            botTokenSet: boolean;
                            botTokenHint: string | null;
                        } | null;
                        slack: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            botTokenSet: boolean;
                            botTokenHint: string | null;
                            appTokenSet: boolean;
                            appTokenHint: string | null;
                        } | null;
                        discord: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            botTokenSet: boolean;
                            botTokenHint: string | null;
                        } | null;
                        whatsapp: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            /** @description Whether a phone is linked. */
                            linked: boolean;
                        } | null;
                        /** @description Version of the engine. */
                        version: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    configureChannel: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The messenger. */
                channel: "telegram" | "slack" | "discord" | "whatsapp";
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "botToken": "123456789:AAHf…",
                 *       "dmPolicy": "pairing",
                 *       "allowFrom": [
                 *         "603767951"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Telegram, Slack (`xoxb-`), Discord. Unchanged if omitted. */
                    botToken?: unknown;
                    /** @description Slack (`xapp-`). Unchanged if omitted. */
                    appToken?: unknown;
                    enabled?: boolean;
                    /**
                     * @description Who may write to the agent; `closed` is an older name for `allowlist`.
                     * @enum {string}
                     */
                    dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                    /** @description Allowed senders, in the channel’s own format: numeric ids for Telegram. */
                    allowFrom?: (string | number)[];
                    /** @description Saves the change without restarting the gateway. */
                    skipRestart?: boolean;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description The channel is configured. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram changed"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            /** @description The gateway is being restarted. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram changed",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removeChannel: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The messenger. */
                channel: "telegram" | "slack" | "discord" | "whatsapp";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The channel is removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram changed"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            /** @description The gateway is being restarted. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram changed",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listDevices: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The devices waiting for approval, and the paired ones. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "pending": [
                     *         {
                     *           "requestId": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "deviceId": "334e41ae88807321775fd2e6309ce4acdc1666544cac1339c57b7994a3262594"
                     *         }
                     *       ],
                     *       "paired": [
                     *         {
                     *           "deviceId": "334e41ae88807321775fd2e6309ce4acdc1666544cac1339c57b7994a3262594"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        pending: ({
                            requestId: string;
                            deviceId: string;
                            publicKey?: string;
                            displayName?: string;
                            platform?: string;
                            clientId?: string;
                            clientMode?: string;
                            role?: string;
                            roles?: string[];
                            scopes?: string[];
                            remoteIp?: string;
                            ts?: number;
                        } & {
                            [key: string]: unknown;
                        })[];
                        paired: ({
                            deviceId: string;
                            publicKey?: string;
                            displayName?: string;
                            platform?: string;
                            clientId?: string;
                            clientMode?: string;
                            role?: string;
                            roles?: string[];
                            scopes?: string[];
                            remoteIp?: string;
                        } & {
                            [key: string]: unknown;
                        })[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    approveAllDevices: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The approved devices, and the others. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approved": [
                     *         "683619e4-3515-4229-9c58-05e77bc17d85"
                     *       ],
                     *       "failed": [],
                     *       "message": "Approved"
                     *     }
                     */
                    "application/json": {
                        approved: string[];
                        failed: {
                            requestId: string;
                            success: boolean;
                            error: string;
                        }[];
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    approveDevice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the pairing request. */
                requestId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is paired. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "requestId": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "message": "Approved"
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        requestId: string;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description Whether to include disabled tasks. */
                includeDisabled?: "true" | "false";
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tasks, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobs": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "name": "Morning report",
                     *           "enabled": true,
                     *           "createdAtMs": 1795281866768
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        jobs: ({
                            id: string;
                            name: string;
                            enabled: boolean;
                            createdAtMs: number;
                            declarationKey?: string;
                        } & {
                            [key: string]: unknown;
                        })[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Morning report",
                 *       "schedule": {
                 *         "kind": "cron",
                 *         "expr": "0 9 * * *"
                 *       },
                 *       "payload": {
                 *         "kind": "agentTurn",
                 *         "message": "Sum up what came in over night."
                 *       }
                 *     }
                 */
                "application/json": {
                    name: string;
                    description?: string;
                    /** @default true */
                    enabled?: boolean;
                    schedule: {
                        /** @constant */
                        kind: "at";
                        /** @description Once, at this time; UTC unless it has an offset. */
                        at: string;
                    } | {
                        /** @constant */
                        kind: "every";
                        everyMs: number;
                        staggerMs?: number;
                    } | {
                        /** @constant */
                        kind: "cron";
                        /** @description Minute, hour, day of the month, month, day of the week. */
                        expr: string;
                        /** Format: time-zone */
                        tz?: string;
                        staggerMs?: number;
                    };
                    payload: ({
                        /** @constant */
                        kind: "agentTurn";
                        text?: string;
                        message?: string;
                        model?: string;
                        thinking?: string;
                        timeoutSeconds?: number;
                    } | Record<string, never> | Record<string, never>) | ({
                        /** @constant */
                        kind: "systemEvent";
                        text?: string;
                        message?: string;
                    } | Record<string, never> | Record<string, never>);
                    /**
                     * @description `main` accepts system events, `isolated` turns of the agent; by default the one that the payload needs.
                     * @enum {string}
                     */
                    sessionTarget?: "main" | "isolated";
                    /**
                     * @default now
                     * @enum {string}
                     */
                    wakeMode?: "now" | "next-heartbeat";
                    /**
                     * @description Where the result is sent; nowhere by default.
                     * @default {
                     *       "mode": "none"
                     *     }
                     */
                    delivery?: {
                        /** @enum {string} */
                        mode: "none" | "announce" | "webhook";
                        channel?: string;
                        to?: string;
                        bestEffort?: boolean;
                    };
                };
            };
        };
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Morning report",
                 *       "schedule": {
                 *         "kind": "cron",
                 *         "expr": "0 9 * * *"
                 *       }
                 *     }
                 */
                "application/json": {
                    name?: string;
                    description?: string;
                    enabled?: boolean;
                    schedule?: {
                        /** @constant */
                        kind: "at";
                        /** @description Once, at this time; UTC unless it has an offset. */
                        at: string;
                    } | {
                        /** @constant */
                        kind: "every";
                        everyMs: number;
                        staggerMs?: number;
                    } | {
                        /** @constant */
                        kind: "cron";
                        /** @description Minute, hour, day of the month, month, day of the week. */
                        expr: string;
                        /** Format: time-zone */
                        tz?: string;
                        staggerMs?: number;
                    };
                    payload?: ({
                        /** @constant */
                        kind: "agentTurn";
                        text?: string;
                        message?: string;
                        model?: string;
                        thinking?: string;
                        timeoutSeconds?: number;
                    } | Record<string, never> | Record<string, never>) | ({
                        /** @constant */
                        kind: "systemEvent";
                        text?: string;
                        message?: string;
                    } | Record<string, never> | Record<string, never>);
                    /**
                     * @description `main` accepts system events, `isolated` turns of the agent; by default the one that the payload needs.
                     * @enum {string}
                     */
                    sessionTarget?: "main" | "isolated";
                    /** @enum {string} */
                    wakeMode?: "now" | "next-heartbeat";
                    /** @description Where the result is sent; nowhere by default. */
                    delivery?: {
                        /** @enum {string} */
                        mode: "none" | "announce" | "webhook";
                        channel?: string;
                        to?: string;
                        bestEffort?: boolean;
                    };
                } | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The changed task. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    runTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether it was started. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true
                     *     }
                     */
                    "application/json": {
                        ok: boolean;
                        enqueued?: boolean;
                        runId?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    toggleTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": {
                    enabled?: boolean;
                };
            };
        };
        responses: {
            /** @description The changed task. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listTaskRuns: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its runs, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "jobId": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "ts": 1795334404210
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        entries: ({
                            jobId: string;
                            ts: number;
                        } & {
                            [key: string]: unknown;
                        })[];
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listTemplates: {
        parameters: {
            query?: {
                /**
                 * @description Only this category.
                 * @example productivity
                 */
                category?: string;
                /** @description Only featured templates, or only others. */
                featured?: "true" | "false";
                /** @description `me`: only templates that this user created. */
                submittedBy?: "me";
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The templates. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "templates": [
                     *         {
                     *           "templateId": "tk3m9x2q",
                     *           "name": "Librarian",
                     *           "slug": "librarian",
                     *           "description": "Keeps a catalogue of books.",
                     *           "longDescription": null,
                     *           "authorName": "",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "reference",
                     *           "tags": [
                     *             "books"
                     *           ],
                     *           "openclawVersion": "2026.9.6",
                     *           "requiredSecrets": [
                     *             {
                     *               "name": "CATALOGUE_KEY",
                     *               "description": "Opens the catalogue.",
                     *               "required": false
                     *             }
                     *           ],
                     *           "includedSkillCids": [],
                     *           "defaultVibe": "quiet and exact",
                     *           "defaultEmoji": "📚",
                     *           "version": 1,
                     *           "partnerName": "",
                     *           "partnerUrl": null,
                     *           "partnerLogoUrl": null,
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "featured": false,
                     *           "sortOrder": 1,
                     *           "status": "published",
                     *           "archived": false,
                     *           "price": null,
                     *           "priceAsset": "",
                     *           "priceNetwork": "",
                     *           "payToAddress": null,
                     *           "isFree": true,
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "submittedBy": null,
                     *           "gitUrl": null,
                     *           "gitCommitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *         }
                     *       ],
                     *       "categories": []
                     *     }
                     */
                    "application/json": {
                        templates: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description True for those that ship with Berth. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was created from. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        }[];
                        /** @description Of all templates that the caller can see, not only of this page. */
                        categories: string[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agentId": "x7f3k2ab",
                 *       "slug": "librarian",
                 *       "category": "reference",
                 *       "tags": [
                 *         "books"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description The agent of the workspace whose snapshot becomes the template. */
                    agentId?: string;
                    /** @description A snapshot of the agent’s history. Default: the newest one. */
                    snapshotCid?: string;
                    /** @description Instead of `agentId`: the https address of a public repository, as for `git clone`. */
                    gitUrl?: string | null;
                    /** @description Default: the repository’s default branch. */
                    branch?: string | null;
                    /** @description Instead of `branch`: `refs/heads/main`, a tag, or a commit. */
                    ref?: string | null;
                    /** @description The folder of the repository that contains the template. Default: the whole repository. */
                    path?: string | null;
                    name?: string;
                    /** @description The same as `name`. */
                    nameOverride?: string;
                    slug?: string;
                    /** @description The same as `slug`. */
                    slugOverride?: string;
                    description?: string;
                    longDescription?: string | null;
                    category?: string;
                    tags?: string[];
                    authorName?: string;
                    authorUrl?: string | null;
                    authorLogoUrl?: string | null;
                };
            };
        };
        responses: {
            /** @description The template. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books.",
                     *         "longDescription": null,
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": false
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 1,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "submittedBy": null,
                     *         "gitUrl": null,
                     *         "gitCommitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description True for those that ship with Berth. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was created from. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
            507: components["responses"]["507"];
        };
    };
    listPublicTemplates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The templates. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "templates": [
                     *         {
                     *           "templateId": "tk3m9x2q",
                     *           "name": "Librarian",
                     *           "slug": "librarian",
                     *           "description": "Keeps a catalogue of books.",
                     *           "longDescription": null,
                     *           "authorName": "",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "reference",
                     *           "tags": [
                     *             "books"
                     *           ],
                     *           "openclawVersion": "2026.9.6",
                     *           "requiredSecrets": [
                     *             {
                     *               "name": "CATALOGUE_KEY",
                     *               "description": "Opens the catalogue.",
                     *               "required": false
                     *             }
                     *           ],
                     *           "includedSkillCids": [],
                     *           "defaultVibe": "quiet and exact",
                     *           "defaultEmoji": "📚",
                     *           "version": 1,
                     *           "partnerName": "",
                     *           "partnerUrl": null,
                     *           "partnerLogoUrl": null,
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "featured": false,
                     *           "sortOrder": 1,
                     *           "status": "published",
                     *           "archived": false,
                     *           "price": null,
                     *           "priceAsset": "",
                     *           "priceNetwork": "",
                     *           "payToAddress": null,
                     *           "isFree": true,
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z",
                     *           "submittedBy": null,
                     *           "gitUrl": null,
                     *           "gitCommitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *         }
                     *       ],
                     *       "categories": []
                     *     }
                     */
                    "application/json": {
                        templates: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description True for those that ship with Berth. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was created from. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        }[];
                        /** @description Of all templates that the caller can see, not only of this page. */
                        categories: string[];
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    getTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The slug.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books.",
                     *         "longDescription": null,
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": false
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 1,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "submittedBy": null,
                     *         "gitUrl": null,
                     *         "gitCommitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *       }
                     *     }
                     */
                    "application/json": {
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description True for those that ship with Berth. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was created from. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the template, 8 characters.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agentId": "x7f3k2ab",
                 *       "description": "Keeps a catalogue of books."
                 *     }
                 */
                "application/json": {
                    /** @description The agent of the workspace whose snapshot becomes the template. */
                    agentId?: string;
                    /** @description A snapshot of the agent’s history. Default: the newest one. */
                    snapshotCid?: string;
                    /** @description Instead of `agentId`: the https address of a public repository, as for `git clone`. */
                    gitUrl?: string | null;
                    /** @description Default: the repository’s default branch. */
                    branch?: string | null;
                    /** @description Instead of `branch`: `refs/heads/main`, a tag, or a commit. */
                    ref?: string | null;
                    /** @description The folder of the repository that contains the template. Default: the whole repository. */
                    path?: string | null;
                    name?: string;
                    /** @description The same as `name`. */
                    nameOverride?: string;
                    slug?: string;
                    /** @description The same as `slug`. */
                    slugOverride?: string;
                    description?: string;
                    longDescription?: string | null;
                    category?: string;
                    tags?: string[];
                    authorName?: string;
                    authorUrl?: string | null;
                    authorLogoUrl?: string | null;
                };
            };
        };
        responses: {
            /** @description The template. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books.",
                     *         "longDescription": null,
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": false
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 1,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "submittedBy": null,
                     *         "gitUrl": null,
                     *         "gitCommitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description True for those that ship with Berth. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was created from. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
            507: components["responses"]["507"];
        };
    };
    archiveTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the template, 8 characters.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template is archived. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Template Librarian archived"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getTemplateById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the template, 8 characters.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books.",
                     *         "longDescription": null,
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": false
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 1,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z",
                     *         "submittedBy": null,
                     *         "gitUrl": null,
                     *         "gitCommitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *       }
                     *     }
                     */
                    "application/json": {
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description True for those that ship with Berth. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was created from. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    validateTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agentId": "x7f3k2ab"
                 *     }
                 */
                "application/json": {
                    /** @description The agent of the workspace whose snapshot becomes the template. */
                    agentId?: string;
                    /** @description A snapshot of the agent’s history. Default: the newest one. */
                    snapshotCid?: string;
                    /** @description Instead of `agentId`: the https address of a public repository, as for `git clone`. */
                    gitUrl?: string | null;
                    /** @description Default: the repository’s default branch. */
                    branch?: string | null;
                    /** @description Instead of `branch`: `refs/heads/main`, a tag, or a commit. */
                    ref?: string | null;
                    /** @description The folder of the repository that contains the template. Default: the whole repository. */
                    path?: string | null;
                };
            };
        };
        responses: {
            /** @description Its contents, and its faults. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "errors": [],
                     *       "manifest": null,
                     *       "readme": "# Librarian\n",
                     *       "files": [
                     *         "README.md",
                     *         "manifest.json",
                     *         "workspace/AGENTS.md"
                     *       ],
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *     }
                     */
                    "application/json": {
                        valid: boolean;
                        errors: string[];
                        manifest: {
                            [key: string]: unknown;
                        } | null;
                        readme: string | null;
                        /** @description Paths, at most 1000. */
                        files: string[];
                        commitSha: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listTemplateBranches: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "gitUrl": "https://git.example/librarian.git"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: git-url
                     * @description The https address of a public repository, as for `git clone`.
                     */
                    gitUrl: string;
                };
            };
        };
        responses: {
            /** @description Its branches, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "branches": [
                     *         "main"
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description Names, at most 1000. */
                        branches: string[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listTemplateRefs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "gitUrl": "https://git.example/librarian.git"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: git-url
                     * @description The https address of a public repository, as for `git clone`.
                     */
                    gitUrl: string;
                    /** @description Text that the name contains, in any case. */
                    search?: string;
                };
            };
        };
        responses: {
            /** @description Its branches and tags, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "branches": [
                     *         "main"
                     *       ],
                     *       "tags": [
                     *         "main"
                     *       ],
                     *       "defaultBranch": "main"
                     *     }
                     */
                    "application/json": {
                        /** @description Names, at most 1000. */
                        branches: string[];
                        /** @description Names, at most 1000. */
                        tags: string[];
                        /** @description Null if the server does not report it. */
                        defaultBranch: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listSnapshots: {
        parameters: {
            query?: {
                /** @description The number of items per page. */
                limit?: number;
                /** @description The `next_page_token` of the previous page. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The history. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "snapshots": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *           "changeSummary": null,
                     *           "contentDiff": null,
                     *           "createdAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        snapshots: {
                            agentId: string;
                            /** @description A folder on IPFS: the tree of the commit. */
                            snapshotCid: string;
                            userId: string;
                            /** @description The commit in the agent’s git repository. */
                            commitSha: string | null;
                            /** @description A readable summary of the changes since the previous snapshot. */
                            changeSummary: string | null;
                            /** @description Unified diff against the previous snapshot, at most 64 KiB. */
                            contentDiff: string | null;
                            createdAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    compareSnapshots: {
        parameters: {
            query: {
                /** @description A snapshot of this agent’s history; any CID version and base. */
                from: string;
                /** @description A snapshot of this agent’s history; any CID version and base. */
                to: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The difference. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "from": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "to": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "diff": "diff --git a/MEMORY.md b/MEMORY.md\n@@ -1 +1,2 @@\n # Memory\n+The catalogue is due.\n",
                     *       "truncated": false
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        from: string;
                        to: string;
                        /** @description Unified diff in git’s format; empty if both are the same. At most 256 KiB. */
                        diff: string;
                        /** @description True if the diff was cut. */
                        truncated: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getSyncStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of snapshots. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "configured": true,
                     *       "lastSync": "2026-11-21T10:58:03.485Z",
                     *       "message": "A change is saved within about 60 seconds while the agent runs"
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        /** @description Whether snapshots are taken. */
                        configured: boolean;
                        /** @description The missing settings, if snapshots are not configured. */
                        missing?: string[];
                        lastSync: string | null;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    syncAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace is saved. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Snapshot taken",
                     *       "lastSync": "2026-11-21T10:58:03.485Z",
                     *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *       "changeSummary": "1 changed",
                     *       "leftOut": []
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        lastSync: string;
                        /** @description The newest snapshot, whether new or existing. */
                        snapshotCid: string;
                        commitSha: string;
                        /** @description Null if nothing had changed. */
                        changeSummary: string | null;
                        /** @description Files that are not in the snapshot, each with the reason: `<path>: <reason>`. */
                        leftOut: string[];
                        /** @description The same as one text. */
                        details?: string;
                    };
                };
            };
            /** @description The workspace is being saved. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Snapshot taken",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    resetAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description A snapshot of this agent’s history; any CID version and base.
                     */
                    snapshotCid: string;
                };
            };
        };
        responses: {
            /** @description The workspace matches the snapshot. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Workspace reset to bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        snapshotCid: string;
                        commitSha: string;
                        /** @description Empty folders and permissions that could not be restored, and why. */
                        lost?: string[];
                    };
                };
            };
            /** @description The workspace is being reset. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Workspace reset to bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        snapshotCid: string;
                        commitSha: string;
                        /** @description Empty folders and permissions that could not be restored, and why. */
                        lost?: string[];
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPortForwarding: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The routes, by path. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "mappings": [
                     *         {
                     *           "port": 3000,
                     *           "pathPrefix": "/",
                     *           "protected": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        mappings: {
                            port: number;
                            pathPrefix: string;
                            protected: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    setPortForwarding: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "mappings": [
                 *         {
                 *           "port": 3000,
                 *           "pathPrefix": "/"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    mappings: {
                        /** @description From 1025 to 65535, except 18789 and 7700. */
                        port: number;
                        /**
                         * Format: path-prefix
                         * @description Whole segments of a path, such as `/app`; `/` matches everything.
                         */
                        pathPrefix: string;
                        /** @description Whether it requires the gateway token. */
                        protected?: boolean | null;
                    }[] | null;
                };
            };
        };
        responses: {
            /** @description The new routes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "mappings": [
                     *         {
                     *           "port": 3000,
                     *           "pathPrefix": "/",
                     *           "protected": false
                     *         }
                     *       ],
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        mappings: {
                            port: number;
                            pathPrefix: string;
                            protected: boolean;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listDomains: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domains, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domains": [
                     *         {
                     *           "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *           "agentId": "x7f3k2ab",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "subdomain": null,
                     *           "customDomain": "shop.example.com",
                     *           "targetPort": 3000,
                     *           "protected": false,
                     *           "status": "pending_ownership",
                     *           "url": "https://shop.example.com",
                     *           "cnameTarget": "x7f3k2ab.apps.example",
                     *           "txtName": "_service-verify.shop.example.com",
                     *           "txtValue": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *           "createdAt": "2026-11-21T10:58:03.485Z",
                     *           "updatedAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        domains: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Its address once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that Berth still has to see; null once it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "customDomain": "shop.example.com",
                 *       "targetPort": 3000
                 *     }
                 */
                "application/json": {
                    /** @description One label: the name below the operator’s domain. */
                    subdomain?: string | null;
                    /** @description Your own domain, such as `shop.example.com`. */
                    customDomain?: string | null;
                    /** @description From 1025 to 65535, except 18789 and 7700. */
                    targetPort: number;
                    protected?: boolean | null;
                } & ({
                    subdomain: string;
                } | {
                    customDomain: string;
                });
            };
        };
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "domain": {
                     *         "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "subdomain": null,
                     *         "customDomain": "shop.example.com",
                     *         "targetPort": 3000,
                     *         "protected": false,
                     *         "status": "pending_ownership",
                     *         "url": "https://shop.example.com",
                     *         "cnameTarget": "x7f3k2ab.apps.example",
                     *         "txtName": "_service-verify.shop.example.com",
                     *         "txtValue": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        domain: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Its address once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that Berth still has to see; null once it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getDomainChallenge: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "customDomain": "shop.example.com"
                 *     }
                 */
                "application/json": {
                    /** Format: domain-name */
                    customDomain: string;
                };
            };
        };
        responses: {
            /** @description The records to set. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "customDomain": "shop.example.com",
                     *       "type": "TXT",
                     *       "name": "_service-verify.shop.example.com",
                     *       "value": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *       "cnameTarget": "x7f3k2ab.apps.example"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        customDomain: string;
                        /** @constant */
                        type: "TXT";
                        /** @description Name of the TXT record to set. */
                        name: string;
                        /** @description Its value. */
                        value: string;
                        /** @description The target for a CNAME record of the domain. */
                        cnameTarget: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the domain, a UUID. */
                domainId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "targetPort": 3000
                 *     }
                 */
                "application/json": {
                    subdomain?: unknown;
                    customDomain?: unknown;
                    /** @description From 1025 to 65535, except 18789 and 7700. */
                    targetPort?: number;
                    /** @description Whether it requires the gateway token. */
                    protected?: boolean;
                };
            };
        };
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "domain": {
                     *         "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "subdomain": null,
                     *         "customDomain": "shop.example.com",
                     *         "targetPort": 3000,
                     *         "protected": false,
                     *         "status": "pending_ownership",
                     *         "url": "https://shop.example.com",
                     *         "cnameTarget": "x7f3k2ab.apps.example",
                     *         "txtName": "_service-verify.shop.example.com",
                     *         "txtValue": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        domain: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Its address once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that Berth still has to see; null once it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the domain, a UUID. */
                domainId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Domain deleted"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    verifyDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the domain, a UUID. */
                domainId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain, verified or still pending. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "domain": {
                     *         "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "subdomain": null,
                     *         "customDomain": "shop.example.com",
                     *         "targetPort": 3000,
                     *         "protected": false,
                     *         "status": "pending_ownership",
                     *         "url": "https://shop.example.com",
                     *         "cnameTarget": "x7f3k2ab.apps.example",
                     *         "txtName": "_service-verify.shop.example.com",
                     *         "txtValue": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *         "createdAt": "2026-11-21T10:58:03.485Z",
                     *         "updatedAt": "2026-11-21T10:58:03.485Z"
                     *       },
                     *       "verified": true,
                     *       "message": "The domain is verified"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        domain: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Its address once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that Berth still has to see; null once it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                        verified: boolean;
                        /** @description What is left to do if it is not verified. */
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    putIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    postIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    patchIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createChatCompletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "openclaw/default",
                 *       "messages": [
                 *         {
                 *           "role": "user",
                 *           "content": "Which books came?"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description `openclaw/default`, or another model from the list. */
                    model: string;
                    messages: ({
                        role: string;
                        content: unknown;
                    } & {
                        [key: string]: unknown;
                    })[];
                    /** @description Respond with server-sent events while the agent writes. */
                    stream?: boolean;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description A completion: JSON, or server-sent events if `stream` is true. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "object": "chat.completion",
                     *       "choices": [
                     *         {
                     *           "index": 0,
                     *           "message": {
                     *             "role": "assistant",
                     *             "content": "Three, all on ships."
                     *           },
                     *           "finish_reason": "stop"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                    /**
                     * @example data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Three"}}]}
                     *
                     *     data: [DONE]
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    createResponse: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "openclaw/default",
                 *       "input": "Which books came?"
                 *     }
                 */
                "application/json": {
                    /** @description `openclaw/default`, or another model from the list. */
                    model: string;
                    input: unknown;
                    /** @description Respond with server-sent events while the agent writes. */
                    stream?: boolean;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description A response: JSON, or server-sent events if `stream` is true. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "object": "response",
                     *       "output": [
                     *         {
                     *           "type": "message",
                     *           "role": "assistant",
                     *           "content": [
                     *             {
                     *               "type": "output_text",
                     *               "text": "Three, all on ships."
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                    /**
                     * @example event: response.output_text.delta
                     *     data: {"type":"response.output_text.delta","delta":"Three, all on ships."}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The models. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "object": "list",
                     *       "data": [
                     *         {
                     *           "id": "openclaw/default",
                     *           "object": "model",
                     *           "owned_by": "openclaw"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    readModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of a model in the list of models, such as `openclaw/default`. */
                model: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "openclaw/default",
                     *       "object": "model",
                     *       "owned_by": "openclaw"
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getIpfsNode: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The node. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "driver": "kubo",
                     *         "agent": "kubo/0.43.0",
                     *         "peer_id": "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp",
                     *         "addresses": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "repo_bytes": 734003200
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @enum {string} */
                            driver: "kubo" | "embedded";
                            agent: string;
                            peer_id: string | null;
                            addresses: string[];
                            repo_bytes: number | null;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    live: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        status: "ok";
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ready, or `degraded` if another component is unhealthy. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok",
                     *       "parts": {
                     *         "database": {
                     *           "status": "ok"
                     *         },
                     *         "queue": {
                     *           "status": "ok"
                     *         },
                     *         "schema": {
                     *           "status": "ok"
                     *         },
                     *         "disk": {
                     *           "status": "ok"
                     *         },
                     *         "host": {
                     *           "status": "ok"
                     *         },
                     *         "dispatcher": {
                     *           "status": "ok"
                     *         },
                     *         "workers": {
                     *           "status": "ok"
                     *         },
                     *         "ipfs": {
                     *           "status": "ok"
                     *         },
                     *         "ipfs_private": {
                     *           "status": "ok"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @enum {string} */
                        status: "ok" | "degraded" | "down";
                        parts: {
                            database: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            queue: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            schema: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            disk: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            host: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            dispatcher: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            workers: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs_private: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            docker?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            kubernetes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            processes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                        };
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            /** @description A required component is unavailable, or has no room on its disk. Nothing that was accepted is lost. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "down",
                     *       "parts": {
                     *         "database": {
                     *           "status": "ok"
                     *         },
                     *         "queue": {
                     *           "status": "ok"
                     *         },
                     *         "schema": {
                     *           "status": "ok"
                     *         },
                     *         "disk": {
                     *           "status": "ok"
                     *         },
                     *         "host": {
                     *           "status": "ok"
                     *         },
                     *         "dispatcher": {
                     *           "status": "ok"
                     *         },
                     *         "workers": {
                     *           "status": "ok"
                     *         },
                     *         "ipfs": {
                     *           "status": "ok"
                     *         },
                     *         "ipfs_private": {
                     *           "status": "ok"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @enum {string} */
                        status: "ok" | "degraded" | "down";
                        parts: {
                            database: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            queue: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            schema: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            disk: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            host: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            dispatcher: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            workers: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs_private: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            docker?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            kubernetes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            processes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                        };
                    };
                };
            };
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "openapi": "3.1.0",
                     *       "paths": {}
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The client already has it: `If-None-Match`. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    docs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description The client already has it: `If-None-Match`. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirects to `/docs`, or browsers to the dashboard if it is enabled. */
            302: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
}
