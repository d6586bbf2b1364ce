//! One request, parsed: what comes after this module handles a closed enum, never raw JSON.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::generic::{GenericAnchor, GenericDispatchParams, GenericSnapshotParams};
use maka_cu_protocol::ids::{SessionId, SnapshotId};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::params::{
    AppsListParams, DispatchElementParams, DispatchKeyParams, DispatchPointParams, LaunchParams,
    ObserveParams, PermissionsCheckParams, ScreenCaptureParams, SessionBeginParams,
    SessionEndParams, WindowListParams,
};
use maka_cu_protocol::rpc::{Request, RpcCode, RpcError};
use maka_cu_protocol::sets::{Path, Tier};

use crate::dispatch::element::path_of;
use crate::generic;
use crate::reply::RefusalShape;

/// A request with params of the right shape.
#[derive(Debug)]
pub enum Call {
    /// `session.begin`.
    SessionBegin(SessionBeginParams),
    /// `session.end`.
    SessionEnd(SessionEndParams),
    /// `window.list`.
    WindowList(WindowListParams),
    /// `apps.list`.
    AppsList,
    /// `apps.launch`.
    Launch(LaunchParams),
    /// `observe`.
    Observe(Box<ObserveParams>),
    /// `dispatch.element`.
    DispatchElement(Box<DispatchElementParams>),
    /// `dispatch.key`.
    DispatchKey(Box<DispatchKeyParams>),
    /// `dispatch.point`.
    DispatchPoint(Box<DispatchPointParams>),
    /// `screen.capture`.
    ScreenCapture(ScreenCaptureParams),
    /// `permissions.check`.
    PermissionsCheck(PermissionsCheckParams),
    /// `host.dispatch`.
    HostDispatch(Box<GenericDispatchParams>),
    /// `host.snapshot`.
    HostSnapshot(Box<GenericSnapshotParams>),
    /// One of the reserved `capture.*` methods, whatever its params.
    Reserved,
}

impl Call {
    /// Parses a request that is not the handshake.
    ///
    /// # Errors
    /// `unknown_method`, `invalid_params`, or `invalid_request` for a second `host.hello`.
    pub fn parse(request: &Request) -> Result<Self, RpcError> {
        let params = &request.params;
        Ok(match request.method()? {
            Method::HostHello => return Err(RpcError::new(RpcCode::InvalidRequest)),
            Method::SessionBegin => Self::SessionBegin(SessionBeginParams::from_value(params)?),
            Method::SessionEnd => Self::SessionEnd(SessionEndParams::from_value(params)?),
            Method::WindowList => Self::WindowList(WindowListParams::from_value(params)?),
            Method::AppsList => {
                AppsListParams::from_value(params)?;
                Self::AppsList
            }
            Method::AppsLaunch => Self::Launch(LaunchParams::from_value(params)?),
            Method::Observe => Self::Observe(Box::new(ObserveParams::from_value(params)?)),
            Method::DispatchElement => {
                Self::DispatchElement(Box::new(DispatchElementParams::from_value(params)?))
            }
            Method::DispatchKey => {
                Self::DispatchKey(Box::new(DispatchKeyParams::from_value(params)?))
            }
            Method::DispatchPoint => {
                Self::DispatchPoint(Box::new(DispatchPointParams::from_value(params)?))
            }
            Method::ScreenCapture => Self::ScreenCapture(ScreenCaptureParams::from_value(params)?),
            Method::PermissionsCheck => {
                Self::PermissionsCheck(PermissionsCheckParams::from_value(params)?)
            }
            Method::CaptureStart | Method::CaptureNext | Method::CaptureStop => Self::Reserved,
            Method::HostDispatch => {
                Self::HostDispatch(Box::new(GenericDispatchParams::from_value(params)?))
            }
            Method::HostSnapshot => {
                Self::HostSnapshot(Box::new(GenericSnapshotParams::from_value(params)?))
            }
        })
    }

    /// The refusal that this method always gives, if it gives one.
    #[must_use]
    pub const fn immediate_refusal(&self) -> Option<DomainCode> {
        match self {
            Self::Reserved => Some(DomainCode::NotImplemented),
            Self::SessionBegin(_)
            | Self::SessionEnd(_)
            | Self::WindowList(_)
            | Self::AppsList
            | Self::Launch(_)
            | Self::Observe(_)
            | Self::DispatchElement(_)
            | Self::DispatchKey(_)
            | Self::DispatchPoint(_)
            | Self::ScreenCapture(_)
            | Self::PermissionsCheck(_)
            | Self::HostDispatch(_)
            | Self::HostSnapshot(_) => None,
        }
    }

    /// What a refusal of this request looks like.
    #[must_use]
    pub fn refusal_shape(&self) -> RefusalShape {
        let coordinate = |tool_call_id: &_| RefusalShape::Dispatch {
            tool_call_id: Clone::clone(tool_call_id),
            tier: Tier::CoordinateBackground,
            attempted: Path::CgEventPid,
        };
        match self {
            Self::DispatchElement(params) => RefusalShape::Dispatch {
                tool_call_id: params.tool_call_id.clone(),
                tier: Tier::Ax,
                attempted: path_of(&params.action),
            },
            Self::DispatchKey(params) => coordinate(&params.tool_call_id),
            Self::DispatchPoint(params) => coordinate(&params.tool_call_id),
            Self::HostDispatch(params) => RefusalShape::Dispatch {
                tool_call_id: params.tool_call_id.clone(),
                tier: params.tier,
                attempted: generic::path_of(params),
            },
            Self::SessionBegin(_)
            | Self::SessionEnd(_)
            | Self::WindowList(_)
            | Self::AppsList
            | Self::Launch(_)
            | Self::Observe(_)
            | Self::ScreenCapture(_)
            | Self::PermissionsCheck(_)
            | Self::HostSnapshot(_)
            | Self::Reserved => RefusalShape::Plain,
        }
    }

    /// The snapshot that this request quotes.
    #[must_use]
    pub fn quoted(&self) -> Option<(&SessionId, &SnapshotId)> {
        match self {
            Self::DispatchElement(params) => Some((&params.session, &params.snapshot_id)),
            Self::DispatchKey(params) => Some((&params.session, &params.snapshot_id)),
            Self::DispatchPoint(params) => Some((&params.session, &params.snapshot_id)),
            Self::HostDispatch(params) => match &params.anchor {
                GenericAnchor::Snapshot(snapshot_id) => Some((&params.session, snapshot_id)),
                GenericAnchor::OnlyLiveOf(_) => None,
            },
            Self::SessionBegin(_)
            | Self::SessionEnd(_)
            | Self::WindowList(_)
            | Self::AppsList
            | Self::Launch(_)
            | Self::Observe(_)
            | Self::ScreenCapture(_)
            | Self::PermissionsCheck(_)
            | Self::HostSnapshot(_)
            | Self::Reserved => None,
        }
    }

    /// The method, for logs.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::SessionBegin(_) => Method::SessionBegin.as_str(),
            Self::SessionEnd(_) => Method::SessionEnd.as_str(),
            Self::WindowList(_) => Method::WindowList.as_str(),
            Self::AppsList => Method::AppsList.as_str(),
            Self::Launch(_) => Method::AppsLaunch.as_str(),
            Self::Observe(_) => Method::Observe.as_str(),
            Self::DispatchElement(_) => Method::DispatchElement.as_str(),
            Self::DispatchKey(_) => Method::DispatchKey.as_str(),
            Self::DispatchPoint(_) => Method::DispatchPoint.as_str(),
            Self::ScreenCapture(_) => Method::ScreenCapture.as_str(),
            Self::PermissionsCheck(_) => Method::PermissionsCheck.as_str(),
            Self::HostDispatch(_) => Method::HostDispatch.as_str(),
            Self::HostSnapshot(_) => Method::HostSnapshot.as_str(),
            Self::Reserved => "capture.*",
        }
    }
}
